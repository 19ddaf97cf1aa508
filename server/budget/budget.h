#ifndef SERVER_BUDGET_BUDGET_H
#define SERVER_BUDGET_BUDGET_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/status.h"

/* Bytes that the process holds for its clients: heads, bodies as received and decompressed, and
 * responses that are not taken yet. They are counted for each connection (an account), for each
 * client address and for the process, and each of the three has a limit.
 *
 * An account belongs to one thread. What it counts is a plain integer; the address and the process,
 * which all threads share, are touched only when it grows past what it has reserved from them, in
 * steps of BUDGET_STEP_BYTES. So their sums are of reservations: at most two steps an account more
 * than is held. */
#define BUDGET_STEP_BYTES ((size_t)16384)

typedef struct budget_limits {
    size_t bytes_max;            /* of the process */
    size_t connection_bytes_max; /* of one account */
    size_t address_bytes_max;    /* of one address */
    int address_accounts_max;    /* connections of one address */
} budget_limits;

typedef enum budget_verdict {
    BUDGET_GRANTED,
    BUDGET_CONNECTION_FULL,
    BUDGET_ADDRESS_FULL,
    BUDGET_PROCESS_FULL,
    BUDGET_VERDICTS
} budget_verdict;

/* "connection", "address", "process" for the three that are full. */
const char *budget_verdict_name(budget_verdict v);

typedef struct budget_address budget_address;

typedef struct budget {
    budget_limits limits;
    _Atomic size_t bytes; /* reserved by all accounts */
    _Atomic uint64_t refusals[BUDGET_VERDICTS];
    pthread_mutex_t lock; /* of what follows: taken when accounts are opened and closed */
    uint64_t seed;
    budget_address **addresses; /* a hash table with chains */
    size_t address_count, capacity;
} budget;

typedef struct budget_account {
    budget *of; /* NULL: not open; everything is granted */
    budget_address *address;
    size_t bytes, reserved;
} budget_account;

/* STATUS_OUT_OF_MEMORY. */
status budget_init(budget *b, const budget_limits *limits) MUST_CHECK;
/* Every account is closed. */
void budget_dispose(budget *b);

/* Opens the account of a connection from `peer`; NULL or a Unix socket: one address for all.
 * Sixteen bytes tell addresses apart, an IPv6 network of 64 bits is one. STATUS_RESOURCE_EXHAUSTED:
 * the address has too many; STATUS_OUT_OF_MEMORY. Takes a lock. */
status budget_open(budget *b, budget_account *a, const struct sockaddr *peer) MUST_CHECK;
/* Gives back what it still holds. Of an account that is not open: nothing happens. */
void budget_close(budget_account *a);

/* An account of another thread, for what is held for the same connection: `of` must stay open. Its
 * bytes count for the address and the process, and have the limit of a connection to themselves. */
void budget_lend(const budget_account *of, budget_account *loan);
/* Gives back what it still holds. */
void budget_return(budget_account *loan);

/* For budget_add() and budget_force(). */
budget_verdict budget_reserve(budget_account *a, size_t bytes, bool is_forced) MUST_CHECK;
/* Returns what is reserved and not held. */
void budget_trim(budget_account *a);

/* `bytes` more are about to be held. Not granted: they are not counted, and the refusal is. */
static inline budget_verdict budget_add(budget_account *a, size_t bytes)
{
    if (a->reserved - a->bytes >= bytes) {
        a->bytes += bytes;
        return BUDGET_GRANTED;
    }
    return budget_reserve(a, bytes, false);
}

/* `bytes` more are held already: they count whatever the limits say. */
static inline void budget_force(budget_account *a, size_t bytes)
{
    if (a->reserved - a->bytes >= bytes)
        a->bytes += bytes;
    else
        (void)!budget_reserve(a, bytes, true);
}

/* `bytes` are not held any more. */
static inline void budget_subtract(budget_account *a, size_t bytes)
{
    a->bytes -= bytes;
    if (a->reserved - a->bytes > 2 * BUDGET_STEP_BYTES)
        budget_trim(a);
}

/* Would so many bytes more be granted now? They are not counted; a refusal is. */
budget_verdict budget_ask(const budget_account *a, size_t bytes) MUST_CHECK;

/* For what no connection holds, such as the memory of an execution: bytes of the process alone.
 * False: there is no room; the refusal is counted. Any thread. */
bool budget_take(budget *b, size_t bytes) MUST_CHECK;
void budget_give(budget *b, size_t bytes);

/* By how many bytes the process is above 7/8 of its limit: short of bytes. Any thread. */
size_t budget_excess(const budget *b);

#endif
