// TLS, and a user with a password, by both packages.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Holdfast, NoAnswer, Refused } from "holdfast-queue";
import { TcpServer } from "./server.mjs";

function certificate(folder) {
  const words = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const files = ["-keyout", `${folder}/key.pem`, "-out", `${folder}/cert.pem`];
  return spawnSync("openssl", [...words, ...names, ...files]).status === 0;
}

for (const library of ["redis", "ioredis"]) {
  test(`TLS, by ${library}`, async (t) => {
    const server = new TcpServer();
    if (!certificate(server.folder)) return t.skip("no openssl");
    const [cert, key] = [`${server.folder}/cert.pem`, `${server.folder}/key.pem`];
    server.more.push("--tls-auth-clients", "no", "--tls-cert-file", cert, "--tls-key-file", key);
    server.more.push("--tls-ca-cert-file", cert);
    await server.start();
    t.after(() => server.end());
    // The port of TCP becomes that of TLS, when the files are there.
    await server.ask("CONFIG", "SET", "port", "0", "tls-port", String(server.port));
    const url = `rediss://localhost:${server.port}`;
    const hf = new Holdfast({ url, library, tls: { ca: readFileSync(cert) }, deadline: "2m" });
    assert.equal((await hf.send("t")).outcome, "new");
    hf.close();
    const distrustful = new Holdfast({ url, library, deadline: 6000 });
    await assert.rejects(
      distrustful.send("t"),
      (error) => error instanceof NoAnswer && /self.signed/.test(error.message),
    );
    distrustful.close();
  });

  test(`a user with a password, by ${library}`, async (t) => {
    const server = await new TcpServer().start();
    t.after(() => server.end());
    await server.ask("ACL", "SETUSER", "ada", "on", ">p@ss:word", "~hf:*", "+@all", "-@admin", "-info");
    await server.ask("ACL", "SETUSER", "default", "resetpass", ">other");
    const at = `127.0.0.1:${server.port}`;
    const hf = new Holdfast({ url: `redis://ada:p%40ss%3Aword@${at}`, library, deadline: "2m" });
    assert.equal((await hf.send("t")).outcome, "new");
    hf.close();
    for (const [url, text] of [
      [`redis://ada:wrong@${at}`, /WRONGPASS/],
      [`redis://${at}`, /NOAUTH/],
    ]) {
      const refused = new Holdfast({ url, library, deadline: "2m" });
      await assert.rejects(refused.send("t"), (error) => error instanceof Refused && text.test(error.message), url);
      refused.close();
    }
  });
}
