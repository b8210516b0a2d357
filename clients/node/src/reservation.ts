import { failure } from './errors.js';
import type { Authority, Proof, Reservation, ReserveInput } from './generated.js';
import type { TaskforceGovernor } from './governor.js';

/** What `withReservation` reserves, and for whom. */
export interface ReservationRequest {
  /** What is asked; one operation key for each attempt. */
  input: ReserveInput;
  /** The root run. */
  runId: string;
  /** Who asks, as the trusted host attests it. */
  authority: Authority;
  /** The session that executes; it must be the task's owner. */
  sessionId: string;
  /** Drops the reservation or its binding, if that has not begun; what is running is for the work. */
  signal?: AbortSignal;
}

/**
 * Reserves, binds, runs the work, and settles with the proof that it returns. If the work throws, the
 * reservation is marked unknown and the error is thrown on: only the host can find out whether the
 * execution is over. Nothing is released without a proof; docs/helpers.md tells every case.
 * @throws {TaskforceError} E_REPLAY if the operation key has been used to run something, and what
 * reserve, bind, settle and markUnknown throw
 */
export async function withReservation(
  governor: TaskforceGovernor,
  request: ReservationRequest,
  work: (reservation: Reservation) => Proof | Promise<Proof>,
): Promise<Reservation> {
  const { runId, authority } = request;
  const running = await start(governor, request);
  const key = { reservation_id: running.reservation_id, generation: running.generation };
  let proof: Proof;
  try {
    proof = await work(running);
  } catch (error) {
    await governor
      .markUnknown({ ...key, reason: reasonOf(error) }, runId, authority)
      .catch((failed: Error) => {
        failed.cause = error;
        throw failed;
      });
    throw error;
  }
  return governor.settle({ ...key, proof }, runId, authority);
}

async function start(
  governor: TaskforceGovernor,
  { input, runId, authority, sessionId, signal }: ReservationRequest,
): Promise<Reservation> {
  const options = signal && { signal };
  const reservation = await governor.reserve(input, runId, authority, options);
  const { reservation_id, generation, state } = reservation;
  if (state !== 'reserved') {
    const text = `the operation key is that of a reservation that is ${state}; nothing was run again`;
    throw failure('E_REPLAY', text, { reservation });
  }
  const binding = { reservation_id, generation, session_id: sessionId };
  return governor.bind(binding, runId, authority, options);
}

function reasonOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.trim() === '' ? 'the work failed without a text' : text;
}
