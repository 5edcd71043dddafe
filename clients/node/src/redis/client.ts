/**
 * One connection, by node-redis or ioredis. Both would send a command again after a reconnection;
 * here they never do, because only the caller knows whether that is harmless.
 */
import type { ConnectionOptions } from "node:tls";
import { HoldfastError } from "../errors.js";
import type { Address } from "./address.js";

export type Word = string | Buffer;

export interface Client {
  /** Texts in an answer are Buffers. */
  execute(words: Word[]): Promise<unknown>;
  close(): void;
}

export interface Target extends Pick<Address, "username" | "password" | "db"> {
  host?: string;
  port?: number;
  path?: string;
  tls?: ConnectionOptions;
}

export type Library = "redis" | "ioredis";

/** What is used of a client of node-redis 5 and newer. */
export interface NodeRedisClient {
  readonly isOpen: boolean;
  connect(): Promise<unknown>;
  sendCommand(words: Word[], options?: object): Promise<unknown>;
  duplicate(): NodeRedisClient;
  on(event: "error", listener: (error: Error) => void): unknown;
  destroy(): void;
}

/** What is used of a client of ioredis 5 and newer. */
export interface IoRedisClient {
  callBuffer(command: string, ...words: Word[]): Promise<unknown>;
  duplicate(): IoRedisClient;
  on(event: "error", listener: (error: Error) => void): unknown;
  disconnect(): void;
}

/** A client that the program has made itself. */
export type RedisClient = NodeRedisClient | IoRedisClient;

const TEXTS_AS_BUFFERS = { typeMapping: { 36: Buffer, 43: Buffer, 61: Buffer } };
const ignore = (): void => {}; // a failure is the answer of the command that met it

class NodeRedis implements Client {
  constructor(private readonly client: NodeRedisClient) {}

  async connect(): Promise<void> {
    this.client.on("error", ignore);
    await this.client.connect();
  }

  execute(words: Word[]): Promise<unknown> {
    return this.client.sendCommand(words, TEXTS_AS_BUFFERS);
  }

  close(): void {
    if (this.client.isOpen) this.client.destroy();
  }
}

class IoRedis implements Client {
  constructor(private readonly client: IoRedisClient) {}

  execute(words: Word[]): Promise<unknown> {
    const [command, ...others] = words as [string, ...Word[]];
    return this.client.callBuffer(command, ...others);
  }

  close(): void {
    this.client.disconnect();
  }
}

// ---- connections of this package ----

/** Opens a connection by the package that was found. */
export type Opener = (target: Target, timeout: number) => Promise<Client>;

/** Takes a moment the first time: both packages have many files. */
export async function findLibrary(library: Library | undefined): Promise<Opener> {
  if (library !== "ioredis") {
    const found = await optional(() => import("redis"));
    if (found !== null) return (target, timeout) => openNodeRedis(found, target, timeout);
  }
  if (library !== "redis") {
    const found = await optional(() => import("ioredis"));
    if (found !== null) return (target, timeout) => openIoRedis(found, target, timeout);
  }
  const missing = library ?? "redis or ioredis";
  throw new HoldfastError(`expected the package ${missing} beside holdfast-queue: npm install ${library ?? "redis"}`);
}

/** A package that may be missing. */
async function optional<T>(load: () => Promise<T>): Promise<T | null> {
  try {
    return await load();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ERR_MODULE_NOT_FOUND" || code === "MODULE_NOT_FOUND") return null;
    throw error;
  }
}

async function openNodeRedis(
  { createClient }: typeof import("redis"),
  target: Target,
  timeout: number,
): Promise<Client> {
  const { host, port, path, tls, username, password, db } = target;
  const place =
    path !== undefined ? { path } : { host, port, ...(tls !== undefined && { tls: true as const, ...tls }) };
  const client = new NodeRedis(
    createClient({
      socket: { ...place, connectTimeout: timeout, reconnectStrategy: false } as NonNullable<
        Parameters<typeof createClient>[0]
      >["socket"],
      username,
      password,
      database: db,
      RESP: 2,
      disableOfflineQueue: true,
      commandOptions: { timeout: 0 }, // an AbortSignal for each command: the caller's deadline ends it anyway
    }) as unknown as NodeRedisClient,
  );
  await client.connect();
  return client;
}

async function openIoRedis(
  { Redis }: Pick<typeof import("ioredis"), "Redis">,
  target: Target,
  timeout: number,
): Promise<Client> {
  const client = new Redis({
    ...target,
    lazyConnect: true,
    connectTimeout: timeout,
    retryStrategy: () => null,
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    enableReadyCheck: false,
    autoResendUnfulfilledCommands: false,
  });
  let failure: Error | undefined; // `connect` itself says only that the connection is closed
  client.on("error", (error: Error) => (failure ??= error));
  try {
    await client.connect();
  } catch (error) {
    throw failure ?? error;
  }
  return new IoRedis(client as unknown as IoRedisClient);
}

// ---- a client of the program ----

/** The program's client, which reconnects as the program has set it up. */
export function adopt(client: RedisClient): Client {
  if ("callBuffer" in client) return new IoRedis(client);
  const own = new NodeRedis(client);
  return {
    execute: async (words) => {
      if (!client.isOpen) await client.connect();
      return own.execute(words);
    },
    close: ignore,
  };
}

/** Another connection to the same Redis, for a command that waits there. */
export async function another(client: RedisClient): Promise<Client> {
  if ("callBuffer" in client) {
    const copy = client.duplicate();
    copy.on("error", ignore);
    return new IoRedis(copy);
  }
  const copy = new NodeRedis(client.duplicate());
  await copy.connect();
  return copy;
}

export function checkClient(client: RedisClient): void {
  const members = client as unknown as Record<string, unknown>;
  const has = (name: string): boolean => typeof members[name] === "function";
  if (members.isCluster === true || "slots" in client)
    throw new TypeError(
      "redis: expected a client of one Redis. For a cluster name its address: redis+cluster://host1,host2",
    );
  if (!has("duplicate") || !(has("callBuffer") || (has("sendCommand") && "isOpen" in client)))
    throw new TypeError("redis: expected a client of node-redis 5 or newer, or of ioredis 5 or newer");
}
