// The job that delivers one event to a subscriber's program.
import { createHmac } from "node:crypto";
import { Dead, Holdfast, Retry } from "holdfast-queue";

const secret = process.env.WEBHOOK_SECRET;
if (!secret) throw new Error("expected in WEBHOOK_SECRET the text that signs each delivery");

export const hf = new Holdfast({ queue: "webhooks" });

export function signature(id, body) {
  return createHmac("sha256", secret).update(`${id}.${body}`).digest("hex");
}

/** What a busy receiver asks for, but at most an hour; undefined leaves the wait to the worker. */
function waitOf(response) {
  const seconds = Number(response.headers.get("retry-after") ?? NaN);
  return Number.isInteger(seconds) && seconds >= 0 ? Math.min(seconds, 3600) * 1000 : undefined;
}

export const deliver = hf.job(
  "webhook.deliver",
  { timeout: "30s", maxAttempts: 8, keep: "1d" },
  async ({ url, event }, job) => {
    const body = JSON.stringify(event);
    const headers = {
      "content-type": "application/json",
      "webhook-id": job.id, // the same in every attempt: the receiver can leave out what it has seen
      "webhook-signature": signature(job.id, body),
    };
    const response = await fetch(url, { method: "POST", body, headers, redirect: "manual", signal: job.signal });
    await response.body?.cancel();
    const { status } = response;
    if (response.ok) return { status, attempt: job.attempt };
    if (status === 429 || status === 503)
      throw new Retry(`the receiver is busy: ${status}`, { delay: waitOf(response) });
    if (status < 500) throw new Dead(`the receiver refuses it: ${status}`);
    throw new Error(`the receiver failed: ${status}`);
  },
);
