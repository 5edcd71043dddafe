/** The address of Redis, in the forms that all of Holdfast takes. */
export interface Node {
  host: string;
  port: number;
}

export interface Address {
  kind: "one" | "sentinel" | "cluster";
  nodes: Node[];
  /** A Unix socket, in the place of a node. */
  path?: string;
  /** The name under which the sentinels know the master. */
  master: string;
  tls: boolean;
  username?: string;
  password?: string;
  db: number;
}

const FORM = /^([a-z+]+):\/\/(?:([^@/]*)@)?([^/?]*)(\/[^?]*)?(?:\?(.*))?$/;
const SCHEMES = ["redis", "rediss", "unix", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster"];

// The text of an address may have a password in it, so no error repeats it.
export function parseAddress(url: string): Address {
  const [, scheme = "", userinfo = "", hosts = "", path = "", query = ""] = FORM.exec(url) ?? [];
  if (!SCHEMES.includes(scheme))
    throw new TypeError(
      "expected as the address of Redis redis://, rediss://, unix://, redis+sentinel:// or redis+cluster://, " +
        `found ${scheme === "" ? "none of them" : scheme + "://"}`,
    );
  const kind = scheme.endsWith("+sentinel") ? "sentinel" : scheme.endsWith("+cluster") ? "cluster" : "one";
  const [username = "", password = ""] = userinfo.includes(":") ? split(userinfo, ":") : [userinfo];
  const address: Address = { kind, nodes: [], master: "", tls: scheme.startsWith("rediss"), db: 0 };
  if (username !== "") address.username = decodeURIComponent(username);
  if (password !== "") address.password = decodeURIComponent(password);
  if (scheme === "unix") {
    address.path = decodeURIComponent(path);
    address.db = database(new URLSearchParams(query).get("db") ?? "0");
    return address;
  }
  const port = kind === "sentinel" ? 26379 : 6379;
  address.nodes = hosts
    .split(",")
    .filter((host) => host !== "")
    .map((host) => nodeOf(host, port));
  const parts = path.split("/").filter((part) => part !== "");
  if (kind === "one" && address.nodes.length === 0) address.nodes.push({ host: "localhost", port });
  if (kind === "sentinel") address.master = decodeURIComponent(parts.shift() ?? "");
  if (address.nodes.length === 0 || (kind === "sentinel" && address.master === ""))
    throw new TypeError(`expected ${scheme}://host1,host2${kind === "sentinel" ? "/master" : ""}`);
  if (kind !== "cluster") address.db = database(parts[0] ?? new URLSearchParams(query).get("db") ?? "0");
  return address;
}

function split(text: string, at: string): [string, string] {
  const place = text.indexOf(at);
  return [text.slice(0, place), text.slice(place + at.length)];
}

export function nodeOf(text: string, port: number): Node {
  const found = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d{1,5}))?$/.exec(text);
  if (found === null)
    throw new TypeError("expected each host of the address of Redis as host, host:port or [::1]:port");
  return { host: found[1] ?? found[2]!, port: Number(found[3] ?? port) };
}

function database(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new TypeError("expected a number as the database of Redis");
  return Number(text);
}
