import type { AuditEntry, Reservation, Snapshot } from './generated.js';

/** What the contract allows for a reservation: a transition, or a proof that settles it. */
export type DecisionOption = 'bind' | 'mark_unknown' | 'never_started' | 'terminal';

/** A reservation that occupies its slot and keeps its holds until somebody decides. */
export interface OpenDecision {
  /** The reservation. */
  reservation: Reservation;
  /** The keys that it keeps from others. */
  holds: string[];
  /** When it came into its state; null if the audit does not tell. */
  since: string | null;
  /** Why it is unknown; null in other states. */
  reason: string | null;
  /** What is allowed now, the usual first. Which proof is true, the host has to find out. */
  options: DecisionOption[];
}

/** The transition that brings a reservation into a state. */
const ACTIONS = { reserved: 'reserve', running: 'bind', unknown: 'markUnknown' } as const;

/**
 * Lists what a host has to decide when it starts again: every reservation that is not settled, in the
 * order of admission. It only reads the snapshot.
 */
export function openDecisions(snapshot: Snapshot): OpenDecision[] {
  return snapshot.reservations.flatMap((reservation) => {
    const { reservation_id, state } = reservation;
    if (state === 'settled') return [];
    const ofThis = (item: { reservation_id: string | null }) =>
      item.reservation_id === reservation_id;
    const entered = snapshot.audit
      .filter((entry) => ofThis(entry) && entry.action === ACTIONS[state])
      .at(-1);
    return {
      reservation,
      holds: snapshot.holds.filter(ofThis).map((hold) => hold.resource_key),
      since: entered?.created_at ?? null,
      reason: state === 'unknown' ? reasonOf(entered) : null,
      options: optionsOf(reservation),
    };
  });
}

function reasonOf(entry: AuditEntry | undefined): string | null {
  const reason = entry?.details.reason;
  return typeof reason === 'string' ? reason : null;
}

function optionsOf({ state, session_id }: Reservation): DecisionOption[] {
  if (state === 'reserved') return ['never_started', 'bind', 'mark_unknown', 'terminal'];
  if (state === 'running') return ['mark_unknown', 'terminal'];
  return session_id === null ? ['never_started', 'terminal'] : ['terminal'];
}
