#ifndef SERVER_REQUEST_LIFE_H
#define SERVER_REQUEST_LIFE_H

#include <stdbool.h>
#include <stdint.h>

/* The life of a request: its states, what may happen in each, and who still uses it. Pure: no
 * sockets, no clock. */

typedef enum life_state {
    LIFE_RECEIVED, /* head and body are here */
    LIFE_PARSED,   /* the body became tensors, in jobs */
    LIFE_ADMITTED, /* the jobs hold their places in the queue */
    LIFE_QUEUED,   /* the jobs are with the batcher */
    LIFE_ANSWERED, /* it has ended, for a reason; what still uses it is being waited for */
    LIFE_RELEASED, /* nobody uses it */
    LIFE_STATE_COUNT
} life_state;

/* The first five end a request; each is its reason. */
typedef enum life_event {
    LIFE_ANSWER,        /* a response of success */
    LIFE_REFUSE,        /* a response that says what was wrong */
    LIFE_DEADLINE,      /* its deadline passes, or will: a response says so */
    LIFE_CLIENT_GONE,   /* nobody waits for a response */
    LIFE_SHUTDOWN,      /* the loop ends before there was a response */
    LIFE_PARSE,         /* received -> parsed */
    LIFE_ADMIT,         /* parsed -> admitted */
    LIFE_SUBMIT,        /* admitted -> queued */
    LIFE_WORK_DONE,     /* nothing that was started for it is under way any more */
    LIFE_STREAM_CLOSED, /* the connection has no more use for it: the response is written, or never
                           will be */
    LIFE_EVENT_COUNT
} life_event;
#define LIFE_REASON_COUNT (LIFE_SHUTDOWN + 1)

/* Who uses a request that has ended. */
enum { LIFE_USED_BY_WORK = 1, LIFE_USED_BY_STREAM = 2 };

typedef struct life {
    life_state state;
    life_event reason;                   /* why it ended; valid from LIFE_ANSWERED on */
    unsigned users;                      /* LIFE_USED_BY_... */
    uint64_t since_ns[LIFE_STATE_COUNT]; /* when each state began; 0: it was skipped */
} life;

/* A request has arrived: state LIFE_RECEIVED, used by its stream and by the work on it. */
void life_begin(life *l, uint64_t now_ns);

/* Whether the event may happen now. */
bool life_allows(const life *l, life_event event);

/* The event happens; it must be allowed. Returns the state after it. */
life_state life_advance(life *l, life_event event, uint64_t now_ns);

/* "received" ..., "answered" ... Static. */
const char *life_state_name(life_state state);
const char *life_event_name(life_event event);

#endif
