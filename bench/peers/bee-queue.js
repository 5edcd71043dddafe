// bee-queue.js - bee-queue as one of the clients that README.md describes.
'use strict';

const BeeQueue = require('bee-queue');
const { main } = require('./client');

const NAME = 'peer';
const CONCURRENCY = 100;
const DEBOUNCE_MS = 1; // delayed jobs that are due so close together are fetched at once

async function open(socket, isWorker) {
  const settings = {
    redis: { path: socket },
    isWorker: false,
    getEvents: false,
    sendEvents: false,
    storeJobs: false,
    removeOnSuccess: true,
  };
  const queue = isWorker ? null : await new BeeQueue(NAME, settings).ready();

  async function saveAll(jobs) {
    const failed = await queue.saveAll(jobs);
    if (failed.size > 0) throw failed.values().next().value;
  }

  async function addAlike(text, n) {
    if (n === 1) await queue.createJob(text).save();
    else await saveAll(Array.from({ length: n }, () => queue.createJob(text)));
  }

  async function addDelayed(jobs) {
    await saveAll(jobs.map(({ dueMs, text }) => queue.createJob(text).delayUntil(dueMs)));
  }

  // The lease is the interval in which a worker must say that it is alive, and in which jobs are
  // looked at that may have stalled.
  async function serve({ leaseMs, onJob, onDone }) {
    const worker = new BeeQueue(NAME, {
      ...settings,
      isWorker: true,
      activateDelayedJobs: true,
      delayedDebounce: DEBOUNCE_MS,
      ...(leaseMs ? { stallInterval: leaseMs } : {}),
    });
    await worker.ready();
    worker.on('succeeded', onDone);
    worker.on('error', (error) => process.stderr.write(`${error.message}\n`));
    worker.process(CONCURRENCY, (job) => onJob(job.data));
    await worker.checkStalledJobs(worker.settings.stallInterval);
  }

  return { batch: 300, calls: 2, addAlike, addDelayed, serve };
}

main(open);
