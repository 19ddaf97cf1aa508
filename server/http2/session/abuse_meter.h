#ifndef SERVER_HTTP2_SESSION_ABUSE_METER_H
#define SERVER_HTTP2_SESSION_ABUSE_METER_H

#include <stdbool.h>
#include <stdint.h>

/* A leaky bucket for what a peer can repeat at no cost to itself: resets, PING, SETTINGS, empty or
 * unknown frames, window updates, priorities. Each costs points; points leak away with time, and
 * useful work (a request that was answered, bytes that moved) takes some away. A peer whose bucket
 * runs over is closed with ENHANCE_YOUR_CALM. Pure: the caller gives the time. One thread. */
typedef struct abuse_meter {
    uint32_t level;      /* points now in the bucket */
    uint32_t capacity;   /* more than this is abuse */
    uint32_t leak_per_s; /* points that leak away in a second */
    uint64_t updated_ns; /* when `level` was computed */
} abuse_meter;

void abuse_meter_init(abuse_meter *m, uint32_t capacity, uint32_t leak_per_s, uint64_t now_ns);

/* Adds `points`; false when the bucket has run over. */
bool abuse_meter_add(abuse_meter *m, uint32_t points, uint64_t now_ns);

/* Takes `points` away for useful work; the level stays at 0 or above. */
void abuse_meter_credit(abuse_meter *m, uint32_t points);

#endif
