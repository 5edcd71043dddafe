// A cluster of two nodes, and a master that a sentinel names, by both packages: the node of each queue
// is asked, MOVED is followed, ASK never.
import assert from "node:assert/strict";
import { appendFileSync, writeFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { Holdfast, JobCancelled } from "holdfast-queue";
import { slotOf } from "../dist/ids.js";
import { TcpServer, until } from "./server.mjs";

const HALF = 8192;

/** A queue whose slot the node with this number has, the first one of many that are tried. */
function queueOf(node, first) {
  for (let k = first; ; k++) {
    const slot = slotOf(`hf:{q${k}}:`);
    if (slot >= HALF === (node === 1)) return [`q${k}`, String(slot)];
  }
}

describe("a cluster", () => {
  let nodes;

  before(async () => {
    nodes = await Promise.all([0, 1].map(() => new TcpServer("--cluster-enabled", "yes").start()));
    await nodes[0].ask("CLUSTER", "ADDSLOTSRANGE", "0", String(HALF - 1));
    await nodes[1].ask("CLUSTER", "ADDSLOTSRANGE", String(HALF), "16383");
    await nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", String(nodes[1].port));
    for (const node of nodes) {
      await until(async () => /cluster_state:ok/.test(await node.ask("CLUSTER", "INFO")));
      await until(async () => (await node.client.call("CLUSTER", "SLOTS")).length === 2);
    }
  });

  after(() => Promise.all(nodes.map((node) => node.end())));

  ["redis", "ioredis"].forEach((library, place) => {
    const from = place * 1000;

    function client(t) {
      const url = `redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(",")}`;
      const hf = new Holdfast({ url, library, deadline: "60s" });
      t.after(() => hf.close());
      return hf;
    }

    async function give(slot, ...order) {
      const id = await nodes[1].ask("CLUSTER", "MYID");
      await nodes[1].ask("CLUSTER", "BUMPEPOCH"); // else the other one may take it back
      for (const node of order) await node.ask("CLUSTER", "SETSLOT", slot, "NODE", id);
    }

    test(`each queue has its node, by ${library}`, async (t) => {
      const hf = client(t);
      for (const [k, node] of nodes.entries()) {
        const [queue] = queueOf(k, from);
        const ref = await hf.send("t", 1, { queue, keep: "1h" });
        assert.equal(await node.ask("ZCARD", `hf:{${queue}}:schedule`), "1");
        assert.equal(await ref.state(), "waiting");
        const end = assert.rejects(ref.result({ timeout: "2m" }), JobCancelled);
        assert.equal(await hf.ref(ref.id, queue).cancel(), true);
        await end;
      }
    });

    test(`MOVED is followed, by ${library}`, async (t) => {
      const hf = client(t);
      await hf.send("t", 1, { queue: queueOf(0, from)[0] });
      const [queue, slot] = queueOf(0, from + 100);
      await give(slot, nodes[1], nodes[0]);
      assert.equal((await hf.send("t", 1, { queue })).outcome, "new");
      assert.equal(await nodes[1].ask("ZCARD", `hf:{${queue}}:schedule`), "1");
    });

    test(`ASK is waited for, by ${library}`, async (t) => {
      const hf = client(t);
      const [queue, slot] = queueOf(0, from + 200);
      await nodes[1].ask("CLUSTER", "SETSLOT", slot, "IMPORTING", await nodes[0].ask("CLUSTER", "MYID"));
      await nodes[0].ask("CLUSTER", "SETSLOT", slot, "MIGRATING", await nodes[1].ask("CLUSTER", "MYID"));
      let moved = false;
      const sent = hf
        .send("t", 1, { queue })
        .finally(() => assert.ok(moved, "it was answered before the slot had moved"));
      await sleep(500);
      moved = true;
      await give(slot, nodes[1], nodes[0]);
      assert.equal((await sent).outcome, "new");
      assert.equal(await nodes[1].ask("ZCARD", `hf:{${queue}}:schedule`), "1");
      assert.doesNotMatch(await nodes[1].ask("INFO", "commandstats"), /cmdstat_asking/);
    });
  });
});

test("the master that a sentinel names, and the next one", async (t) => {
  const master = await new TcpServer().start();
  const replica = await new TcpServer("--replicaof", "127.0.0.1", String(master.port)).start();
  const sentinel = new TcpServer();
  const file = `${sentinel.folder}/sentinel.conf`;
  // A master that only gets no processor for a moment is not down.
  writeFileSync(file, `sentinel monitor main 127.0.0.1 ${master.port} 1\n`);
  appendFileSync(file, "sentinel down-after-milliseconds main 600000\nsentinel failover-timeout main 3000\n");
  sentinel.first = [file, "--sentinel"];
  await sentinel.start();
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
  const clients = ["redis", "ioredis"].map((library) => new Holdfast({ url, library, deadline: "5m" }));
  t.after(async () => {
    clients.forEach((hf) => hf.close());
    await Promise.all([sentinel, replica, master].map((server) => server.end()));
  });
  for (const hf of clients) assert.equal((await hf.send("t")).outcome, "new");
  assert.equal(await master.ask("ZCARD", "hf:{default}:schedule"), "2");
  await until(async () => /role:slave[^]*master_link_status:up/.test(await replica.ask("INFO", "replication")));
  await until(async () => /slaves=1/.test(await sentinel.ask("INFO", "sentinel")));
  await master.stop();
  await sentinel.ask("SENTINEL", "SET", "main", "down-after-milliseconds", "1000");
  for (const hf of clients) assert.equal((await hf.send("t")).outcome, "new");
  assert.match(await replica.ask("INFO", "replication"), /role:master/);
});
