// Compiled by `npm run types`, never run: what the types promise to those who use them.
import { expectTypeOf } from 'expect-type';

import {
  type AuditPage,
  type Authority,
  type BudgetDetail,
  type ClientCode,
  createNativeGovernorAdapter,
  type ERRORS,
  type ErrorCode,
  type HistoryPage,
  type Kind,
  type Mode,
  type Outcome,
  type Proof,
  type Reason,
  type Reservation,
  type ReservationsPage,
  type Role,
  type SettleInput,
  type State,
  TaskforceError,
  TaskforceGovernor,
  TaskforceStore,
} from '../src/index.js';

const lead = { role: 'lead', sessionId: 's' } as const;

export async function transactions(): Promise<string | null> {
  await using store = new TaskforceStore({ root: 'somewhere' });
  const { results } = await store.transaction([
    { method: 'task.open', params: { input: { title: 't' }, runId: 'r', authority: lead } },
    { method: 'governor.snapshot', params: { runId: 'r' } },
  ]);
  const [task, snapshot] = results;
  // @ts-expect-error a transaction cannot contain a watch
  await store.transaction([{ method: 'governor.watch', params: { runId: 'r' } }]);
  return snapshot.reservations[0]?.session_id ?? task.owner_session;
}

export async function calls(store: TaskforceStore, signal: AbortSignal): Promise<void> {
  const governor = new TaskforceGovernor(store);
  const input = {
    operation_key: 'k',
    task_id: 1,
    generation: 0,
    mode: 'write',
    kind: 'new',
    resources: [],
  } as const;
  await governor.reserve({ ...input, resources: [] }, 'r', lead, { signal });
  // @ts-expect-error the contract has no such mode
  await governor.reserve({ ...input, mode: 'own', resources: [] }, 'r', lead);
  // @ts-expect-error the authority is not optional
  await governor.reserve({ ...input, resources: [] }, 'r');
  await governor.history('r', 'audit', { after: 1, signal });
  for await (const { runId } of governor.watch('r', { signal })) runId.trim();
}

/** A proof and a page are told apart by one member. */
export function unions(proof: Proof, page: HistoryPage): string | undefined {
  // @ts-expect-error only a terminal proof has evidence
  const early: string = proof.evidence;
  if (page.view === 'audit') return page.items[0]?.action;
  return proof.kind === 'terminal' ? proof.evidence : early;
}

/** Comparing the code tells what the details hold. */
export function errors(error: unknown): string | undefined {
  if (!(error instanceof TaskforceError)) throw error;
  expectTypeOf(error).toEqualTypeOf<TaskforceError>();
  // @ts-expect-error which members there are depends on the code
  error.details.budget;
  // @ts-expect-error there is no such code
  if (error.code === 'E_SOMETHING') return error.message;
  switch (error.code) {
    case 'E_BUDGET_EXHAUSTED':
      expectTypeOf(error.details.budget).toEqualTypeOf<BudgetDetail>();
      return error.details.budget.limit;
    case 'E_RESOURCE_BUSY':
      return error.details.holders[0]?.resource_key;
    case 'E_GOVERNOR_FENCE':
      expectTypeOf(error.details.fence.expected).toEqualTypeOf<number | null>();
      // @ts-expect-error a fence is no budget
      return error.details.budget;
    case 'E_GOVERNOR_CONFLICT':
      expectTypeOf(error.details.reason).toEqualTypeOf<Reason>();
      return error.details.violations?.[0]?.pointer;
    case 'E_SIDECAR_LOST':
      expectTypeOf(error.details.outcome).toEqualTypeOf<'unknown' | 'not_executed'>();
      return error.details.outcome;
    default:
      return error.details.code;
  }
}

/** What the types of a release must go on being. */
export function literals(): void {
  expectTypeOf<Mode>().toEqualTypeOf<'read' | 'write'>();
  expectTypeOf<Kind>().toEqualTypeOf<'new' | 'reuse' | 'retry'>();
  expectTypeOf<State>().toEqualTypeOf<'reserved' | 'running' | 'unknown' | 'settled'>();
  expectTypeOf<Outcome>().toEqualTypeOf<'succeeded' | 'failed' | 'cancelled'>();
  expectTypeOf<Role>().toEqualTypeOf<'lead' | 'worker'>();
  expectTypeOf<Proof['kind']>().toEqualTypeOf<'never_started' | 'terminal'>();
  expectTypeOf<Proof & { kind: 'terminal' }>().toHaveProperty('evidence').toEqualTypeOf<string>();
  expectTypeOf<Reservation['session_id']>().toEqualTypeOf<string | null>();
  expectTypeOf<ErrorCode>().exclude<ClientCode>().toEqualTypeOf<keyof typeof ERRORS>();
}

/** The arguments of a method are the contract's own, and its result is typed by them. */
export async function signatures(governor: TaskforceGovernor): Promise<void> {
  const options = expectTypeOf<{ signal?: AbortSignal } | undefined>();
  expectTypeOf(governor.settle).parameters.toEqualTypeOf<
    [input: SettleInput, runId: string, authority: Authority, options?: { signal?: AbortSignal }]
  >();
  options.toEqualTypeOf<Parameters<typeof governor.snapshot>[1]>();
  expectTypeOf(await governor.history('r', 'audit')).toEqualTypeOf<AuditPage>();
  expectTypeOf(await governor.history('r', 'reservations')).toEqualTypeOf<ReservationsPage>();
  expectTypeOf(createNativeGovernorAdapter).returns.toBeNever();
}
