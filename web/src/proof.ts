// Checks in the browser that a decision is in the ledger: RFC 9162 §2.1.3.2 for the path, Ed25519 for the signed note.

import type { Proof } from "./api";

export interface Checked {
  size: number;
  root: string;
  isSigned: boolean | null; // null where the browser has no Ed25519
}

function bytesOf(base64: string): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0));
}

function base64Of(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

async function sha256(...parts: Uint8Array[]): Promise<Uint8Array<ArrayBuffer>> {
  const whole = new Uint8Array(parts.reduce((sum, one) => sum + one.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", whole));
}

const LEAF = Uint8Array.of(0);
const NODE = Uint8Array.of(1);

/** The root that a leaf's path leads to. Throws where the path has another length than the tree's. */
async function rootOf(leaf: Uint8Array<ArrayBuffer>, index: number, size: number, path: string[]): Promise<Uint8Array> {
  let place = BigInt(index);
  let last = BigInt(size) - 1n;
  let found = leaf;
  for (const step of path.map(bytesOf)) {
    if (last === 0n) throw new Error("the path is too long");
    if (place % 2n === 1n || place === last) {
      found = await sha256(NODE, step, found);
      while (place % 2n === 0n && place !== 0n) {
        place >>= 1n;
        last >>= 1n;
      }
    } else {
      found = await sha256(NODE, found, step);
    }
    place >>= 1n;
    last >>= 1n;
  }
  if (last !== 0n) throw new Error("the path is too short");
  return found;
}

/** Throws, in one line, where the proof does not hold. */
export async function checkProof(proof: Proof): Promise<Checked> {
  const [text = "", signatures = ""] = proof.checkpoint.split("\n\n");
  const [origin = "", sizeLine = "", root = ""] = text.split("\n");
  const size = Number(sizeLine);
  const leaf = await sha256(LEAF, bytesOf(proof.entry));
  if (base64Of(await rootOf(leaf, proof.index, size, proof.path)) !== root) {
    throw new Error(`this is not entry ${proof.index} of the ${size} that ${origin} signed`);
  }
  return { size, root, isSigned: await isSigned(`${text}\n`, signatures, proof.log_key) };
}

async function isSigned(text: string, signatures: string, logKey: string): Promise<boolean | null> {
  const [name = "", , encoded = ""] = logKey.split("+").length > 3 ? splitKey(logKey) : logKey.split("+");
  const line = signatures.split("\n").find((one) => one.startsWith(`— ${name} `));
  if (line === undefined) return false;
  const signature = bytesOf(line.split(" ")[2] ?? "").slice(4);
  try {
    const key = await crypto.subtle.importKey("raw", bytesOf(encoded).slice(1), "Ed25519", false, ["verify"]);
    return await crypto.subtle.verify("Ed25519", key, signature, new TextEncoder().encode(text));
  } catch {
    return null;
  }
}

/** name+hash+base64, where the base64 may hold a plus. */
function splitKey(key: string): [string, string, string] {
  const [name = "", hash = "", ...rest] = key.split("+");
  return [name, hash, rest.join("+")];
}
