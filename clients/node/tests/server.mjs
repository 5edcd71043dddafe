// A Redis of its own for a test file.
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createConnection, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Redis } from "ioredis";

export class Server {
  folder = mkdtempSync(join(tmpdir(), "hf-node-"));
  socket = join(this.folder, "redis.sock");
  url = `unix://${this.socket}`;

  /** Words of redis-server before all others: a file of its configuration. */
  first = [];

  constructor(...more) {
    this.more = more;
  }

  async start() {
    const words = [
      ...this.first,
      "--port",
      "0",
      "--unixsocket",
      this.socket,
      "--dir",
      this.folder,
      "--save",
      "",
      ...this.more,
    ];
    this.process = spawn("redis-server", words, { stdio: "ignore" });
    this.process.on("error", () => {});
    await until(() => answers(this.socket));
    return this;
  }

  /** Ends it as a crash does. */
  async stop() {
    await ended(this.process, "SIGKILL");
  }

  async end() {
    await this.stop();
    rmSync(this.folder, { recursive: true });
  }
}

function answers(path) {
  if (!existsSync(path)) return false;
  return new Promise((resolve) => {
    const socket = createConnection(path, () => socket.write("PING\r\n"));
    socket.on("data", (data) => resolve(String(data).startsWith("+PONG")) || socket.destroy());
    socket.on("error", () => resolve(false));
  });
}

function isFree(port) {
  return new Promise((resolve) => {
    const server = createServer().once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}

/**
 * A port below those that the kernel gives to connections, to which it would be lost before a server listens. The one
 * that is 10,000 higher is free as well: the bus of a cluster has it.
 */
export async function freePort() {
  for (;;) {
    const port = 10000 + Math.floor(Math.random() * 12000);
    if ((await isFree(port)) && (await isFree(port + 10000))) return port;
  }
}

/** One that is reached by TCP, as nodes of a cluster, masters and sentinels are. */
export class TcpServer extends Server {
  async start() {
    this.port = await freePort();
    this.more.push("--port", String(this.port), "--bind", "127.0.0.1");
    await super.start();
    this.client = new Redis(this.socket);
    this.client.on("error", () => {}); // a test may stop it
    return this;
  }

  /** The answer to a command, as text. */
  async ask(...words) {
    return String(await this.client.call(...words));
  }

  async end() {
    this.client.disconnect();
    await super.end();
  }
}

/** Waits until a condition holds. */
export async function until(holds, ms = 300000) {
  for (const end = Date.now() + ms; ;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`it did not come within ${ms} ms: ${holds}`);
    await sleep(20);
  }
}

/** Ends a child, and returns its exit status. */
export async function ended(child, signal = "SIGTERM") {
  if (child.exitCode === null && child.signalCode === null) {
    const exit = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await exit;
  }
  return child.exitCode;
}
