// The vectors of tests/vectors, which all languages verify: records, ids, shards, answers of scripts, errors.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Call, Plan } from "../dist/call.js";
import { half, shardOf, crc16 } from "../dist/ids.js";
import { parseAddress } from "../dist/redis/address.js";
import { Link, reactionTo, Sharded, translated } from "../dist/redis/link.js";
import { routeTo } from "../dist/redis/routes.js";
import { Server } from "./server.mjs";

function vectors(name, key) {
  return JSON.parse(readFileSync(new URL(`../../../tests/vectors/${name}.json`, import.meta.url)))[key];
}

const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

test("records", () => {
  for (const { job, created, record, script } of vectors("records", "records")) {
    const { type, payload = "", in: delay, ...others } = job;
    const options = Object.fromEntries(
      Object.entries({ delay, ...others }).map(([name, value]) => [camel(name), value]),
    );
    const plan = new Plan(type, "q", options, false);
    const call = new Call(type, plan, Buffer.from(payload));
    call.prepare();
    assert.equal(String(call.record(created || null)), record);
    assert.equal(plan.optional ? "enqueue_with" : "enqueue", script);
  }
});

test("ids", () => {
  const ids = vectors("ids", "ids");
  for (const { ms, number, id } of ids) assert.equal(half(ms) + half(number), id);
});

test("shards", () => {
  for (const { text, crc16: crc, shards } of vectors("shards", "shards")) {
    assert.equal(crc16(text), crc);
    for (const [n, shard] of Object.entries(shards)) assert.equal(shardOf(text, Number(n)), shard);
  }
});

test("what a client does about an error", () => {
  for (const { error, do: does, tags } of vectors("redirects", "errors")) {
    assert.equal(reactionTo(new Error(error)), does, error);
    if (tags !== undefined) assert.deepEqual(translated(new Error(error)).tags, tags);
  }
  for (const text of ["connect ECONNREFUSED 127.0.0.1:1", "Socket closed unexpectedly", "Connection is closed."])
    assert.equal(reactionTo(new Error(text)), "wait");
});

function same(found, expected) {
  if (expected === "$ms") return Number(found) > 1e12;
  if (Array.isArray(expected))
    return (
      Array.isArray(found) && found.length === expected.length && expected.every((each, i) => same(found[i], each))
    );
  return typeof expected === "number" ? found === expected : String(found) === expected;
}

for (const library of ["redis", "ioredis"])
  test(`answers of the scripts, by ${library}`, async (t) => {
    const server = await new Server().start();
    const route = routeTo(parseAddress(server.url), { library, timeout: 60000 });
    const link = new Link(route, 5000);
    t.after(() => link.close() ?? server.end());
    for (const step of vectors("scripts", "steps")) {
      if (step.command !== undefined) {
        await (await route.connect()).execute(step.command);
        continue;
      }
      const { answer } = step;
      const found = await link.send(step.script, step.key, step.args).catch((error) => error);
      if (found instanceof Sharded) assert.equal(`SHARDED holdfast: 2 ${found.message}`, answer.error);
      else if (found instanceof Error)
        assert.equal("holdfast: " + found.message, answer.error?.replace(/^ERR /, ""), step.says);
      else
        assert.ok(
          same(found, answer),
          `${step.says}: ${JSON.stringify(found, (_, v) => (v?.type === "Buffer" ? String(Buffer.from(v.data)) : v))}`,
        );
    }
  });

test("addresses", () => {
  assert.deepEqual(parseAddress("redis://ada:p%40ss@cache.example:7000/3"), {
    kind: "one",
    nodes: [{ host: "cache.example", port: 7000 }],
    master: "",
    tls: false,
    db: 3,
    username: "ada",
    password: "p@ss",
  });
  assert.deepEqual(parseAddress("rediss+sentinel://:pw@a,b:1,[::1]:2/main/1"), {
    kind: "sentinel",
    nodes: [
      { host: "a", port: 26379 },
      { host: "b", port: 1 },
      { host: "::1", port: 2 },
    ],
    master: "main",
    tls: true,
    db: 1,
    password: "pw",
  });
  assert.equal(parseAddress("unix:///run/redis.sock?db=2").path, "/run/redis.sock");
  assert.equal(parseAddress("unix:///run/redis.sock?db=2").db, 2);
  assert.equal(parseAddress("redis+cluster://a:1,b").kind, "cluster");
  for (const bad of ["", "http://a", "redis+sentinel://a", "redis://a/x", "redis://a:b:c"])
    assert.throws(() => parseAddress(bad), TypeError, bad);
  assert.throws(
    () => parseAddress("http://ada:secret@a"),
    (error) => !error.message.includes("secret"),
  );
});
