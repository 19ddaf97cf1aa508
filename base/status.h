#ifndef BASE_STATUS_H
#define BASE_STATUS_H

/* The result of a function that can fail; zero is success. The message of a failure belongs to the
 * thread and is valid until its next failure. */
typedef enum status {
    STATUS_OK = 0,
    STATUS_INVALID_ARGUMENT,   /* the caller's data is wrong */
    STATUS_NOT_FOUND,          /* no such model, version, file, name */
    STATUS_UNSUPPORTED,        /* well-formed, and not implemented */
    STATUS_UNSUPPORTED_CODING, /* the same of a body's content coding (HTTP) */
    STATUS_TOO_LARGE,          /* over a configured limit */
    STATUS_RESOURCE_EXHAUSTED, /* a queue or quota is full: retry later */
    STATUS_UNAVAILABLE,        /* not ready, draining, or a lost device */
    STATUS_DEADLINE_EXCEEDED,
    STATUS_CANCELLED,
    STATUS_CORRUPT, /* a file or a peer violates its format */
    STATUS_IO,
    STATUS_OUT_OF_MEMORY,
    STATUS_INTERNAL, /* a bug of Penstock */
    STATUS_COUNT
} status;

#define MUST_CHECK __attribute__((warn_unused_result))
#define STATUS_MESSAGE_BYTES_MAX 1024

/* Records a message for the calling thread and returns `code`, which must not be STATUS_OK.
 * Longer messages are cut at STATUS_MESSAGE_BYTES_MAX - 1 bytes. */
status status_fail(status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Puts `format: ` before the message of the calling thread's last failure and returns `code`: for a
 * caller that knows the file, the node or the key. */
status status_prefix(status code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The message of the calling thread's last failure; "" before the first one. Borrowed until the
 * next failure. */
const char *status_message(void);

/* The code's name in lower case, such as "not_found": for logs and metric labels. Static. */
const char *status_name(status code);

#endif
