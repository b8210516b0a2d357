/**
 * Node client of the Taskforce sidecar: durable admission of agent executions.
 *
 * @packageDocumentation
 */
export type { StoreOptions } from './connection.js';
export { type ClientCode, type ErrorCode, type ErrorDetails, TaskforceError } from './errors.js';
export type * from './generated.js';
export { ERRORS, PROTOCOL, RESENDS } from './generated.js';
export { createNativeGovernorAdapter, TaskforceGovernor } from './governor.js';
export { type DecisionOption, type OpenDecision, openDecisions } from './recovery.js';
export { type ReservationRequest, withReservation } from './reservation.js';
export { fileKey, type WorktreeKeys, worktreeKeys } from './resources.js';
export { TaskforceStore } from './store.js';
