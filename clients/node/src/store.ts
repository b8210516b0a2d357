import { Connection, type StoreOptions } from './connection.js';
import {
  type CallOptions,
  ConnectionMethods,
  type InitializeResult,
  type MethodName,
  type MethodTable,
  TaskMethods,
  type TransactionCall,
  type TransactionResults,
} from './generated.js';
import type { Watch } from './watch.js';

// Node 18 lacks the symbol; the same stand-in as other libraries' keeps the method reachable there.
const asyncDispose: typeof Symbol.asyncDispose =
  Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');

/**
 * The shared store, seen through a sidecar of its own. The sidecar is started by the first call; if
 * it dies it is started again, and calls that are idempotent by contract are sent again.
 */
export class TaskforceStore extends ConnectionMethods {
  /** The calls about tasks. */
  readonly task: TaskMethods;
  readonly #connection: Connection;

  constructor(options: StoreOptions = {}) {
    super();
    this.#connection = new Connection(options);
    this.task = new TaskMethods(this);
  }

  /** The process id of the sidecar, while one runs. */
  get pid(): number | undefined {
    return this.#connection.pid;
  }

  /**
   * Starts the sidecar if none runs, and returns its versions, store and bounds.
   * @throws {TaskforceError} E_BINARY_NOT_FOUND, E_SIDECAR_START, E_PROTOCOL, E_STORE_*
   */
  async initialize(options?: CallOptions): Promise<InitializeResult> {
    await this.ping(options);
    return this.#connection.server as InitializeResult;
  }

  /**
   * Sends any call of the method table.
   * @throws {TaskforceError} the method's own codes, and E_SIDECAR_LOST if the sidecar died and the
   * call may not be sent again
   */
  override call<M extends MethodName>(
    method: M,
    params: MethodTable[M]['params'],
    options?: CallOptions,
  ): Promise<MethodTable[M]['result']> {
    return this.#connection.call(method, params, options?.signal) as Promise<
      MethodTable[M]['result']
    >;
  }

  /**
   * Executes calls in one transaction: all of them take effect, or none. `details.call` of an error
   * names the call that failed.
   */
  transaction<const Calls extends readonly TransactionCall[]>(
    calls: Calls,
    options?: CallOptions,
  ): Promise<{ results: TransactionResults<Calls> }> {
    return this.call('store.transaction', { calls: [...calls] }, options) as Promise<{
      results: TransactionResults<Calls>;
    }>;
  }

  /** Watches a run; {@link TaskforceGovernor.watch} tells more. */
  watch(runId: string, options?: CallOptions): Watch {
    return this.#connection.watch(runId, options?.signal);
  }

  /**
   * Refuses new calls with E_STORE_CLOSED, lets pending ones finish, ends the sidecar and waits for
   * its exit. It releases nothing: what is admitted stays admitted.
   */
  close(): Promise<void> {
    return this.#connection.close();
  }

  [asyncDispose](): Promise<void> {
    return this.close();
  }
}
