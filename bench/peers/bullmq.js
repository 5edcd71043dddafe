// bullmq.js - BullMQ as one of the clients that README.md describes.
'use strict';

const IORedis = require('ioredis');
const { Queue, Worker } = require('bullmq');
const { main } = require('./client');

const NAME = 'peer';
const CONCURRENCY = Number(process.env.PEER_CONCURRENCY ?? 100);
// Its sandbox: each job in one of this many processes that wait for jobs.
const PROCESSOR = process.env.PEER_SANDBOX && require.resolve('./bullmq-processor');

async function open(socket) {
  const connect = () => new IORedis({ path: socket, maxRetriesPerRequest: null });
  const queue = new Queue(NAME, { connection: connect() });
  await queue.waitUntilReady();

  async function addAlike(data, n) {
    if (n === 1) await queue.add('job', data);
    else await queue.addBulk(Array.from({ length: n }, () => ({ name: 'job', data })));
  }

  async function addDelayed(jobs) {
    const timestamp = Date.now();
    await queue.addBulk(
      jobs.map(({ dueMs, text }) => ({
        name: 'job',
        data: text,
        opts: { timestamp, delay: dueMs - timestamp },
      })),
    );
  }

  // The lease is its lock, which it renews at half its length; the check for stalled jobs comes
  // as often as a lock lasts.
  async function serve({ leaseMs, onJob, onDone }) {
    const lease = leaseMs ? { lockDuration: leaseMs, stalledInterval: leaseMs } : {};
    const worker = new Worker(NAME, PROCESSOR || ((job) => onJob(job.data)), {
      connection: connect(),
      concurrency: CONCURRENCY,
      removeOnComplete: { count: 0 },
      autorun: false,
      ...lease,
    });
    worker.on('completed', onDone);
    worker.on('error', (error) => process.stderr.write(`${error.message}\n`));
    await worker.waitUntilReady();
    worker.run();
  }

  return { batch: 100, calls: 4, addAlike, addDelayed, serve };
}

main(open);
