import {
  type Blocker,
  type Code,
  type DetailsByCode,
  ERRORS,
  type ErrorData,
  type Reservation,
} from './generated.js';

/** The members of the details of the failures that the client itself reports. */
interface ClientDetails {
  /** No sidecar binary was found; the message lists every place that was tried and the remedy. */
  E_BINARY_NOT_FOUND: object;
  /** The sidecar speaks another version of the protocol; the message has both. */
  E_PROTOCOL: {
    /** The versions that the sidecar speaks. */
    supported: number[];
  };
  /** The operation key was used before to run something; nothing was run again. */
  E_REPLAY: {
    /** The reservation that the key names, as it stands. */
    reservation: Reservation;
  };
  /** The sidecar ended or misbehaved before it could serve. */
  E_SIDECAR_START: object;
  /** The sidecar was lost during the call. */
  E_SIDECAR_LOST: {
    /** Whether the call may have taken effect. */
    outcome: 'unknown' | 'not_executed';
  };
}

/** Codes of the failures that the client itself reports. */
export type ClientCode = keyof ClientDetails;

/** Every code that an error of this client can carry. */
export type ErrorCode = Code | ClientCode;

/** What a person or program needs to act on a failure of the given codes: the sidecar's `error.data`. */
export type ErrorDetails<C extends ErrorCode = ErrorCode> = C extends ErrorCode
  ? { code: C; retryable: boolean } & (DetailsByCode & ClientDetails)[C]
  : never;

/** The `error` member of a response. */
export interface WireError {
  code: number;
  message: string;
  data?: ErrorData;
}

class Failure<C extends ErrorCode> extends Error {
  /** The stable code: an E_* code of the sidecar or of this client. */
  readonly code: C;
  /** Why, in a form that a program can act on; which members are present depends on the code. */
  readonly details: ErrorDetails<C>;
  /** True if the same call may succeed later without anything being changed by hand. */
  readonly retryable: boolean;

  constructor(message: string, details: ErrorDetails<C>, options?: ErrorOptions) {
    super(message, options);
    // Hosts recognise an abort by this name, whichever library reports it.
    this.name = details.code === 'E_CANCELLED' ? 'AbortError' : 'TaskforceError';
    this.code = details.code as C;
    this.details = details;
    this.retryable = details.retryable;
  }

  /** After E_SCHEDULER_CAPABILITY: the capabilities that are missing, H01 to H06. */
  get blockers(): Blocker[] | undefined {
    return (this.details as Partial<ErrorDetails<'E_SCHEDULER_CAPABILITY'>>).blockers;
  }
}

/** The one error of this client. Comparing its `code` tells the compiler what `details` holds. */
export type TaskforceError<C extends ErrorCode = ErrorCode> = C extends ErrorCode
  ? Failure<C>
  : never;

/** The class of every error of this client, for `instanceof`. */
export const TaskforceError: {
  new <C extends ErrorCode>(
    message: string,
    details: ErrorDetails<C>,
    options?: ErrorOptions,
  ): TaskforceError<C>;
  readonly prototype: TaskforceError;
} = Failure as never;

/** The details of a code but for the code itself; none if the code has no more than is usual. */
type More<C extends ErrorCode> = Omit<ErrorDetails<C>, 'code' | 'retryable'>;

/** Returns an error of this client's own making. */
export function failure<C extends ErrorCode>(
  code: C,
  message: string,
  ...[more]: object extends More<C> ? [] : [more: More<C>]
): TaskforceError {
  const details = { code, retryable: false, ...more };
  return new TaskforceError(message, details as ErrorDetails);
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
  return new TaskforceError(error.message, details as ErrorDetails);
}

/** A peer that leaves `data` out still has a number that tells what happened. */
function codeOf(number: number): Code {
  for (const [code, spec] of Object.entries(ERRORS)) {
    if (spec.number === number) return code as Code;
  }
  return 'E_INTERNAL';
}
