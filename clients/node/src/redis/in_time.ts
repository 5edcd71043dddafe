/** What was awaited has taken too long. */
export class Late extends Error {}

/** Rejects if the promise takes longer. What it brings then goes to `late`. */
export function inTime<T>(promise: Promise<T>, ms: number, late?: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let over = false;
    const timer = setTimeout(() => {
      over = true;
      reject(new Late("it does not answer"));
    }, ms);
    promise.then(
      (value) => {
        clearTimeout(timer);
        if (over) late?.(value);
        else resolve(value);
      },
      (error: unknown) => {
        clearTimeout(timer);
        reject(error as Error);
      },
    );
  });
}
