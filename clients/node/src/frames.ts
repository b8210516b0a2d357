import { failure } from './errors.js';

const NEWLINE = 0x0a;
const MAX_DEPTH = 64;

/**
 * Cuts a byte stream into lines. Only the newline byte ends a line: it never occurs inside a UTF-8
 * sequence, and other line separators, such as U+2028, are ordinary characters of JSON strings.
 */
export class LineSplitter {
  #chunks: Buffer[] = [];

  /** Takes the next bytes and returns the lines that they complete. */
  push(chunk: Buffer): string[] {
    const lines: string[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      lines.push(this.#complete(chunk, start, end));
      start = end + 1;
    }
    if (start < chunk.length) this.#chunks.push(chunk.subarray(start));
    return lines;
  }

  /** Returns the line that ends in this chunk; mostly it has begun there, too. */
  #complete(chunk: Buffer, start: number, end: number): string {
    if (this.#chunks.length === 0) return chunk.toString('utf8', start, end);
    this.#chunks.push(chunk.subarray(start, end));
    return this.rest();
  }

  /** Returns what follows the last newline, and starts anew. */
  rest(): string {
    const line = Buffer.concat(this.#chunks).toString('utf8');
    this.#chunks = [];
    return line;
  }
}

/**
 * Returns the frame of a message. The sidecar answers a frame that it cannot read without the
 * frame's id, so that the answer reaches nobody: what it would not read is refused here.
 */
export function encode(message: object): string {
  const text = JSON.stringify({ jsonrpc: '2.0', ...message });
  // JSON.stringify escapes a surrogate only if it stands alone; then it is not a character.
  if (/(?<!\\)(?:\\\\)*\\ud[89a-f]/.test(text)) {
    throw failure('E_PARSE', 'the parameters hold a string with an unpaired surrogate');
  }
  // What is nested too deep is longer than its brackets.
  if (text.length > 2 * MAX_DEPTH && depth(text) > MAX_DEPTH) {
    throw failure('E_PARSE', `the parameters are nested deeper than ${MAX_DEPTH} levels`);
  }
  return `${text}\n`;
}

/** Returns how deep arrays and objects are nested in a JSON text. */
function depth(text: string): number {
  let now = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i += 1) {
    const character = text[i];
    if (character === '"') i = endOfString(text, i);
    else if (character === '{' || character === '[') deepest = Math.max(deepest, ++now);
    else if (character === '}' || character === ']') now -= 1;
  }
  return deepest;
}

function endOfString(text: string, start: number): number {
  let i = start + 1;
  while (text[i] !== '"') i += text[i] === '\\' ? 2 : 1;
  return i;
}
