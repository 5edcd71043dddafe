/** Which connection a request takes: to one Redis, to the master that sentinels name, to the node of a slot. */
import type { ConnectionOptions } from "node:tls";
import { slotOf } from "../ids.js";
import { nodeOf, type Address, type Node } from "./address.js";
import {
  adopt,
  another,
  checkClient,
  findLibrary,
  type Client,
  type Library,
  type Opener,
  type RedisClient,
  type Target,
} from "./client.js";
import { inTime } from "./in_time.js";

export interface Route {
  /** Finds the package that makes connections. The first time this is slow, and no fault of Redis. */
  load(): Promise<unknown>;
  /** The connection for a key, if it is there already. */
  current(key: string): Client | undefined;
  connect(key: string): Promise<Client>;
  /** A connection of the caller's own, for a command that waits. */
  open(key: string): Promise<Client>;
  /** A connection has failed, or its server is no master any more. */
  broken(client: Client): void;
  /** An error MOVED names the node of a slot. */
  moved(slot: number, node: string): void;
  close(): void;
}

export interface RouteOptions {
  library: Library | undefined;
  tls: ConnectionOptions | undefined;
  timeout: number;
}

export function routeTo(address: Address, options: RouteOptions): Route {
  const { username, password, db, path } = address;
  const common = { username, password, db, ...(address.tls && { tls: options.tls ?? {} }) };
  let opener: Promise<Opener> | undefined;
  const load = (): Promise<Opener> => (opener ??= findLibrary(options.library));
  // A server may take a connection and not answer: neither package gives that up by itself.
  const open: Open = async (more) => {
    const opened = (await load())({ ...common, ...more }, options.timeout);
    return inTime(opened, options.timeout, (client) => client.close());
  };
  if (address.kind === "cluster") return new ClusterRoute(load, address.nodes, open);
  if (address.kind === "sentinel") return new OneRoute(load, () => openMaster(address, open));
  return new OneRoute(load, () => open(path !== undefined ? { path } : address.nodes[0]!));
}

type Open = (target: Partial<Target>) => Promise<Client>;

// ---- one Redis ----

class OneRoute implements Route {
  private client: Client | undefined;
  private opening: Promise<Client> | undefined;

  constructor(
    readonly load: () => Promise<unknown>,
    private readonly openOne: () => Promise<Client>,
  ) {}

  current(): Client | undefined {
    return this.client;
  }

  connect(): Promise<Client> {
    this.opening ??= this.openOne().then(
      (client) => (this.client = client),
      (error: unknown) => {
        this.opening = undefined;
        throw error;
      },
    );
    return this.opening;
  }

  open(): Promise<Client> {
    return this.openOne();
  }

  broken(client: Client): void {
    client.close();
    if (client === this.client) this.client = this.opening = undefined;
  }

  moved(): void {}

  close(): void {
    if (this.client !== undefined) this.broken(this.client);
  }
}

async function openMaster(address: Address, open: Open): Promise<Client> {
  let failure: unknown = new Error(`no sentinel knows the master '${address.master}'`);
  for (const node of address.nodes) {
    try {
      const sentinel = await open({ ...node, db: 0 });
      try {
        const found = await sentinel.execute(["SENTINEL", "get-master-addr-by-name", address.master]);
        if (Array.isArray(found)) return await open({ host: String(found[0]), port: Number(found[1]) });
      } finally {
        sentinel.close();
      }
    } catch (error) {
      failure = error;
    }
  }
  throw failure;
}

// ---- a cluster ----

class ClusterRoute implements Route {
  private readonly clients = new Map<string, Promise<Client>>();
  private readonly ready = new Map<string, Client>();
  private slots: (string | undefined)[] = [];
  private known = false;
  private reading: Promise<void> | undefined;

  constructor(
    readonly load: () => Promise<unknown>,
    private readonly seeds: Node[],
    private readonly openNode: Open,
  ) {}

  current(key: string): Client | undefined {
    const node = this.known ? this.slots[slotOf(key)] : undefined;
    return node === undefined ? undefined : this.ready.get(node);
  }

  async connect(key: string): Promise<Client> {
    return this.clientOf(await this.nodeOf(key));
  }

  async open(key: string): Promise<Client> {
    return this.openNode(nodeOf(await this.nodeOf(key), 6379));
  }

  broken(client: Client): void {
    client.close();
    for (const [node, each] of this.ready) {
      if (each !== client) continue;
      this.ready.delete(node);
      this.clients.delete(node);
    }
    this.known = false;
  }

  moved(slot: number, node: string): void {
    this.slots[slot] = node;
  }

  close(): void {
    for (const client of [...this.ready.values()]) this.broken(client);
  }

  private async nodeOf(key: string): Promise<string> {
    if (!this.known) await (this.reading ??= this.readSlots().finally(() => (this.reading = undefined)));
    const node = this.slots[slotOf(key)];
    if (node === undefined) {
      this.known = false;
      throw new Error("CLUSTERDOWN no node serves the slot");
    }
    return node;
  }

  private clientOf(node: string): Promise<Client> {
    let client = this.clients.get(node);
    if (client === undefined) {
      client = this.openNode(nodeOf(node, 6379));
      this.clients.set(node, client);
      client.then(
        (opened) => this.ready.set(node, opened),
        () => {
          this.clients.delete(node);
          this.known = false;
        },
      );
    }
    return client;
  }

  /** Asks the nodes that are known for the table of slots, until one of them answers. */
  private async readSlots(): Promise<void> {
    const nodes = [...this.seeds.map(textOf), ...new Set(this.slots)];
    let failure: unknown;
    for (const node of nodes) {
      if (node === undefined) continue;
      try {
        const client = await this.clientOf(node);
        const table = (await client.execute(["CLUSTER", "SLOTS"])) as [number, number, [Buffer | null, number]][];
        this.slots = [];
        for (const [first, last, [host, port]] of table) {
          const name = host === null || host.length === 0 ? nodeOf(node, 6379).host : String(host);
          for (let slot = first; slot <= last; slot++) this.slots[slot] = textOf({ host: name, port });
        }
        this.known = true;
        return;
      } catch (error) {
        failure = error;
      }
    }
    throw failure;
  }
}

function textOf({ host, port }: Node): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

// ---- the program's own client ----

export class OwnRoute implements Route {
  private readonly client: Client;

  constructor(private readonly own: RedisClient) {
    checkClient(own);
    this.client = adopt(own);
  }

  load(): Promise<void> {
    return Promise.resolve();
  }

  current(): Client {
    return this.client;
  }

  connect(): Promise<Client> {
    return Promise.resolve(this.client);
  }

  open(): Promise<Client> {
    return another(this.own);
  }

  broken(): void {}
  moved(): void {}
  close(): void {}
}
