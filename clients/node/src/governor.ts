import { failure } from './errors.js';
import {
  type Blocker,
  type CallOptions,
  type ChangedParams,
  GovernorMethods,
  type HistoryPage,
  type HistoryView,
  type MethodTable,
} from './generated.js';
import type { TaskforceStore } from './store.js';

/** The governor over a store. Many governors can share a store; the rules are the store's. */
export class TaskforceGovernor extends GovernorMethods {
  readonly #store: TaskforceStore;

  constructor(store: TaskforceStore) {
    super(store);
    this.#store = store;
  }

  /**
   * Returns one page of a run's history, of the kind that the view names.
   * @throws {TaskforceError} E_GOVERNOR_CONFLICT
   */
  history<V extends HistoryView>(
    runId: string,
    view: V,
    options?: CallOptions & Pick<MethodTable['governor.history']['params'], 'after' | 'limit'>,
  ): Promise<Extract<HistoryPage, { view: V }>> {
    const { after, limit } = options ?? {};
    const page = this.#store.call('governor.history', { runId, view, after, limit }, options);
    return page as Promise<Extract<HistoryPage, { view: V }>>;
  }

  /**
   * Iterates over the changes of a run, by whatever process. A change says only that there is
   * something new to read, and several may be reported as one. Watching starts with this call, so a
   * snapshot taken after it misses nothing. Waiting for a change keeps the process alive; aborting
   * the signal ends the wait with an AbortError.
   */
  watch(runId: string, options?: CallOptions): AsyncIterableIterator<ChangedParams> {
    return this.#store.watch(runId, options);
  }
}

/** What native execution needs and does not have. */
const BLOCKERS: Blocker[] = [
  { code: 'H01', capability: 'Prebound native session identity' },
  { code: 'H02', capability: 'Complete managed input admission boundary' },
  { code: 'H03', capability: 'Strict durable backend flush and lookup' },
  { code: 'H04', capability: 'Subtree and process quiescence proof' },
  { code: 'H05', capability: 'Exclusive owner lock and recovery' },
  { code: 'H06', capability: 'Trusted workspace identity and isolation' },
];

/**
 * Always throws E_SCHEDULER_CAPABILITY, whatever it is given; `blockers` of the error lists what is
 * missing.
 */
export function createNativeGovernorAdapter(..._configuration: unknown[]): never {
  throw failure('E_SCHEDULER_CAPABILITY', 'native execution lacks capabilities H01 to H06', {
    blockers: BLOCKERS.map((blocker) => ({ ...blocker })),
  });
}
