import { type Blocker, type Code, ERRORS, type ErrorData } from './generated.js';

/** Codes of the failures that the client itself reports. */
export type ClientCode =
  /** No sidecar binary was found; the message lists every place that was tried. */
  | 'E_BINARY_NOT_FOUND'
  /** The sidecar speaks another version of the protocol. */
  | 'E_PROTOCOL'
  /** The sidecar ended or misbehaved before it could serve. */
  | 'E_SIDECAR_START'
  /** The sidecar was lost during the call; `details.outcome` says whether it may have taken effect. */
  | 'E_SIDECAR_LOST';

/** Every code that an error of this client can carry. */
export type ErrorCode = Code | ClientCode;

/** What a person or program needs to act on a failure: the sidecar's `error.data`. */
export interface ErrorDetails extends Omit<ErrorData, 'code'> {
  code: ErrorCode;
  /** After E_SIDECAR_LOST: whether the call may have taken effect. */
  outcome?: 'unknown' | 'not_executed';
}

/** The `error` member of a response. */
export interface WireError {
  code: number;
  message: string;
  data?: ErrorData;
}

/** The one error class of this client. */
export class TaskforceError extends Error {
  /** The stable code: an E_* code of the sidecar or of this client. */
  readonly code: ErrorCode;
  /** Why, in a form that a program can act on; which members are present depends on the code. */
  readonly details: ErrorDetails;
  /** True if the same call may succeed later without anything being changed by hand. */
  readonly retryable: boolean;

  constructor(message: string, details: ErrorDetails, options?: ErrorOptions) {
    super(message, options);
    // Hosts recognise an abort by this name, whichever library reports it.
    this.name = details.code === 'E_CANCELLED' ? 'AbortError' : 'TaskforceError';
    this.code = details.code;
    this.details = details;
    this.retryable = details.retryable;
  }

  /** After E_SCHEDULER_CAPABILITY: the capabilities that are missing, H01 to H06. */
  get blockers(): Blocker[] | undefined {
    return this.details.blockers;
  }
}

/** Returns an error of this client's own making. */
export function failure(
  code: ErrorCode,
  message: string,
  more?: Partial<ErrorDetails>,
): TaskforceError {
  return new TaskforceError(message, { code, retryable: false, ...more });
}

/** Returns the error of a call that its caller aborted before it began. */
export function aborted(signal?: AbortSignal): TaskforceError {
  const details = { code: 'E_CANCELLED', retryable: false } as const;
  const cause = signal?.reason;
  return new TaskforceError('the call was aborted before it began', details, { cause });
}

/** Returns the error that a response carries. */
export function fromWire(error: WireError): TaskforceError {
  const details = error.data ?? { code: codeOf(error.code), retryable: false };
  return new TaskforceError(error.message, details);
}

/** A peer that leaves `data` out still has a number that tells what happened. */
function codeOf(number: number): Code {
  for (const [code, spec] of Object.entries(ERRORS)) {
    if (spec.number === number) return code as Code;
  }
  return 'E_INTERNAL';
}
