// client.js - what the clients for Node share: the verbs of README.md, marks, clocks and words.
'use strict';

const WARM_UP = 0.1; // of the jobs of a rate
const LEAD_MS = 500; // from enqueueing delayed jobs to when the first is due

const nowNs = () => process.hrtime.bigint(); // CLOCK_MONOTONIC
const payload = (mark) => String(mark).padStart(20, '0').padEnd(100, 'x');
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const say = (line) => process.stdout.write(line + '\n');

function sayRate(jobs, sinceNs) {
  say(JSON.stringify({ per_s: (jobs * 1e9) / Number(nowNs() - sinceNs) }));
}

// Sends n jobs, alike, in several calls at a time: so Redis works while Node makes the next.
async function sendMany(client, n) {
  let left = n;
  const one = async () => {
    while (left > 0) {
      const size = Math.min(left, client.batch);
      left -= size;
      await client.addAlike(payload(0), size);
    }
  };
  await Promise.all(Array.from({ length: client.calls }, one));
}

async function fill(client, n) {
  const warmUp = Math.floor(n * WARM_UP);
  await sendMany(client, warmUp);
  const sinceNs = nowNs();
  await sendMany(client, n - warmUp);
  sayRate(n - warmUp, sinceNs);
}

async function each(client, n) {
  const warmUp = Math.floor(n * WARM_UP);
  let sinceNs;
  for (let i = 0; i < n; i += 1) {
    if (i === warmUp) sinceNs = nowNs();
    await client.addAlike(payload(0), 1);
  }
  sayRate(n - warmUp, sinceNs);
}

async function drain(client, n) {
  const warmUp = Math.floor(n * WARM_UP);
  let done = 0;
  let sinceNs;
  await new Promise((resolve, reject) => {
    const onDone = () => {
      done += 1;
      if (done === warmUp) sinceNs = nowNs();
      if (done === n) resolve();
    };
    client.serve({ leaseMs: 0, onJob: async () => {}, onDone }).catch(reject);
  });
  sayRate(n - warmUp, sinceNs);
}

function sayStart(text) {
  const now = nowNs(); // before anything else
  say(`${text.slice(0, 20)} ${now}`);
}

async function serve(client) {
  await client.serve({ leaseMs: 0, onJob: async () => {}, onDone: () => {} });
  await new Promise(() => setInterval(() => {}, 1000));
}

async function work(client, _n, ms) {
  await client.serve({ leaseMs: ms, onJob: async (text) => sayStart(text), onDone: () => {} });
  say('ready');
  await new Promise(() => setInterval(() => {}, 1000));
}

async function hold(client, _n, ms) {
  const onJob = (text) => {
    sayStart(text);
    return new Promise(() => {});
  };
  await client.serve({ leaseMs: ms, onJob, onDone: () => {} });
  say('ready');
  await new Promise(() => setInterval(() => {}, 1000));
}

async function trickle(client, n) {
  for (let i = 0; i < n; i += 1) {
    await pause(2 + Math.random() * 6);
    await client.addAlike(payload(nowNs()), 1);
  }
}

async function delay(client, n, ms) {
  const firstMs = Date.now() + LEAD_MS;
  const dues = Array.from({ length: n }, () => firstMs + Math.floor(Math.random() * ms));
  const textOf = (dueMs) => payload(BigInt(dueMs) * 1000000n);
  await client.addDelayed(dues.map((dueMs) => ({ dueMs, text: textOf(dueMs) })));
}

const verbs = { fill, each, drain, serve, work, hold, trickle, delay };

// open(socket, isWorker) gives a client: `batch` jobs in a call and `calls` at a time are its
// fastest; addAlike(text, n); addDelayed([{dueMs, text}]); serve({leaseMs, onJob, onDone}), which
// comes back when it waits for jobs. leaseMs 0: the default.
exports.main = async function main(open) {
  const [verb, socket, n, ms] = process.argv.slice(2);
  try {
    const client = await open(socket, ['drain', 'serve', 'work', 'hold'].includes(verb));
    await verbs[verb](client, Number(n), Number(ms));
    process.exit(0);
  } catch (error) {
    process.stderr.write(`${error.stack}\n`);
    process.exit(1);
  }
};
