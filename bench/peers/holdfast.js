// holdfast.js - Holdfast for Node among the queues that README.md describes: VERB SOCKET JOBS.
//
// serve: a pool of a worker; its handler does nothing
// fill: enqueues this many jobs, 1,000 in a call
// enqueue: in turns with a program that has only node-redis, and says how fast each is
'use strict';

const { createHash } = require('crypto');
const { readFileSync } = require('fs');
const path = require('path');

const PACKAGE = path.join(__dirname, '../../clients/node');
const { Holdfast } = require(PACKAGE);
const { createClient } = require(require.resolve('redis', { paths: [PACKAGE] }));

const ROUNDS = 7;
const MANY = 100;
const TEXT = 'x'.repeat(89); // {"text":"..."} has 100 bytes

const [verb, socket, jobs] = [process.argv[2], process.argv[3], Number(process.argv[4])];
const hf = new Holdfast({ url: `unix://${socket}`, library: 'redis' });
const nothing = hf.job('peer', async () => {});

const enqueueMany = (n) => hf.enqueueMany(Array.from({ length: n }, () => nothing.call({ text: TEXT })));

async function fill() {
  for (let sent = 0; sent < jobs; sent += 1000) await enqueueMany(1000);
}

// Sends the script of an enqueue with the same arguments, by node-redis alone; ids count up.
async function openBare() {
  const client = createClient({ socket: { path: socket }, RESP: 2 });
  await client.connect();
  const text = readFileSync(path.join(process.env.HOLDFAST_LUA, 'enqueue.lua'));
  await client.sendCommand(['SCRIPT', 'LOAD', text]);
  const sha = createHash('sha1').update(text).digest('hex');
  const record = `{"type":"peer"}\n{"text":"${TEXT}"}`;
  let number = 0;
  let id = 0;
  return (n) => {
    number += 1;
    const words = ['EVALSHA', sha, '1', 'hf:{default}:', 'bare', String(number), '0', '60000', '0'];
    for (let i = 0; i < n; i += 1) {
      id += 1;
      words.push(`bare-${String(id).padStart(9, '0')}`, '0', record);
    }
    words.push('N');
    return client.sendCommand(words);
  };
}

async function rate(call, calls, atOnce, jobsEach) {
  const since = process.hrtime.bigint();
  let left = calls;
  const one = async () => {
    while (left > 0) {
      left -= 1;
      await call();
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  return (calls * jobsEach * 1e9) / Number(process.hrtime.bigint() - since);
}

async function enqueue() {
  const bare = await openBare();
  const one = () => nothing.enqueue({ text: TEXT });
  const ways = {
    one: [one, jobs, 1, 1],
    bare_one: [() => bare(1), jobs, 1, 1],
    together: [one, jobs * 2, MANY, 1],
    bare_together: [() => bare(1), jobs * 2, MANY, 1],
    many: [() => enqueueMany(MANY), jobs / 20, 1, MANY],
    bare_many: [() => bare(MANY), jobs / 20, 1, MANY],
  };
  const found = Object.fromEntries(Object.keys(ways).map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round += 1) {
    // the first one warms up
    for (const [name, way] of Object.entries(ways)) {
      const perS = await rate(...way);
      if (round >= 0) found[name].push(perS);
    }
  }
  const median = (list) => list.sort((a, b) => a - b)[(ROUNDS - 1) / 2];
  console.log(JSON.stringify(Object.fromEntries(Object.entries(found).map(([name, list]) => [name, median(list)]))));
}

async function main() {
  if (verb === 'serve') return hf.run();
  await { fill, enqueue }[verb]();
  return process.exit(0);
}

main().catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
