// redlock.js - the npm package redlock over one Redis: `redlock.js VERB SOCKET N MS`.
//
//   pairs     takes a lock that nobody else wants and gives it back, N times: {"us": of each pair}
//   handover  one holds a lock, another waits for it, N times: {"us": from before the release to
//             when the other one has it, of each}. MS: how long it waits before it asks again, give or
//             take half of it; 0: as the package has it, 200 ms, give or take 100
'use strict';

const { Redis } = require('ioredis');
const { default: Redlock } = require('redlock');

const WARM_UP = 0.25;
const LEASE_MS = 30000;
const nowNs = () => process.hrtime.bigint(); // CLOCK_MONOTONIC
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function open(path, ms) {
  const redis = new Redis({ path });
  const settings = ms > 0 ? { retryDelay: ms, retryJitter: ms / 2 } : {};
  return { redis, locks: new Redlock([redis], { ...settings, retryCount: -1 }) };
}

async function pairs(path, n) {
  const { redis, locks } = open(path, 0);
  let sinceNs;
  const warmUp = Math.floor(n * WARM_UP);
  for (let i = 0; i < n; i += 1) {
    if (i === warmUp) sinceNs = nowNs();
    const lock = await locks.acquire(['pairs'], LEASE_MS);
    await lock.release();
  }
  const us = Number(nowNs() - sinceNs) / 1000 / (n - warmUp);
  redis.disconnect();
  return us;
}

async function handover(path, n, ms) {
  const giver = open(path, ms);
  const taker = open(path, ms);
  const us = [];
  for (let i = 0; i < n; i += 1) {
    const lock = await giver.locks.acquire(['hand-over'], LEASE_MS);
    const taken = taker.locks.acquire(['hand-over'], LEASE_MS).then((next) => {
      const atNs = nowNs();
      return next.release().then(() => atNs);
    });
    await pause(50 + Math.random() * 250);
    const sinceNs = nowNs();
    await lock.release();
    us.push(Number((await taken) - sinceNs) / 1000);
  }
  giver.redis.disconnect();
  taker.redis.disconnect();
  return us;
}

const verbs = { pairs, handover };
const [verb, path, n, ms] = process.argv.slice(2);
verbs[verb](path, Number(n), Number(ms)).then(
  (us) => process.stdout.write(JSON.stringify({ us }) + '\n'),
  (error) => {
    process.stderr.write(`redlock.js: ${error}\n`);
    process.exitCode = 1;
  },
);
