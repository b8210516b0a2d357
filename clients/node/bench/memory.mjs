import { existsSync, readFileSync } from 'node:fs';

/** Whether the memory of another process can be seen. */
export const MEMORY_SEEN = existsSync('/proc/self/status');

/** Resident memory of a process in MiB, now (`VmRSS`) or at its highest (`VmHWM`). */
export function memory(pid, which) {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8');
  const [, kibibytes] = status.match(new RegExp(`^${which}:\\s+(\\d+) kB$`, 'm'));
  return Number(kibibytes) / 1024;
}
