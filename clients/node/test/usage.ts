// Compiled by `npm run types`, never run: what the types promise to those who use them.
import {
  type HistoryPage,
  type Proof,
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

export function errors(error: unknown): string | undefined {
  if (!(error instanceof TaskforceError)) throw error;
  if (error.code === 'E_BUDGET_EXHAUSTED') return error.details.budget?.limit;
  // @ts-expect-error there is no such code
  return error.code === 'E_SOMETHING' ? error.message : error.details.outcome;
}
