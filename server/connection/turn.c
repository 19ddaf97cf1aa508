#include "server/connection/turn.h"

#include <assert.h>

void turns_init(turns *all)
{
    *all = (turns){0};
    h2o_linklist_init_anchor(&all->waiting);
}

/* The first use in a turn makes the share whole again. */
static void renew(const turns *all, turn_share *share)
{
    if (share->turn == all->number)
        return;
    share->turn = all->number;
    share->begin_ns = 0;
    share->requests = 0;
    share->bytes = 0;
}

bool turn_take_request(const turns *all, turn_share *share, uint64_t now_ns)
{
    renew(all, share);
    if (share->requests == 0)
        share->begin_ns = now_ns;
    if (share->requests == TURN_REQUESTS_MAX || now_ns - share->begin_ns > TURN_NS_MAX)
        return false;
    share->requests++;
    return true;
}

bool turn_may_write(const turns *all, turn_share *share)
{
    renew(all, share);
    return share->bytes < TURN_BYTES_MAX;
}

void turn_count_written(const turns *all, turn_share *share, size_t bytes)
{
    renew(all, share);
    share->bytes += bytes;
}

bool turn_take_handshake(turns *all)
{
    if (all->handshakes == TURN_HANDSHAKES_MAX)
        return false;
    all->handshakes++;
    return true;
}

size_t turn_read_bytes_max(turns *all, size_t bytes)
{
    size_t most = (TURN_READ_BYTES_MAX - all->read_bytes) / 4;
    most = most < TURN_READ_BYTES_MIN ? TURN_READ_BYTES_MIN : most;
    bytes = bytes < most ? bytes : most;
    all->read_bytes += bytes;
    if (all->read_bytes > TURN_READ_BYTES_MAX)
        all->read_bytes = TURN_READ_BYTES_MAX;
    return bytes;
}

void turn_wait(turns *all, turn_share *share, void (*go_on)(turn_share *share))
{
    if (turn_is_waiting(share))
        return;
    share->go_on = go_on;
    h2o_linklist_insert(&all->waiting, &share->link);
}

bool turn_is_waiting(turn_share *share)
{
    return h2o_linklist_is_linked(&share->link);
}

void turn_forget(turn_share *share)
{
    if (turn_is_waiting(share))
        h2o_linklist_unlink(&share->link);
}

bool turns_are_waited_for(turns *all)
{
    return !h2o_linklist_is_empty(&all->waiting);
}

int turns_begin(turns *all)
{
    h2o_linklist_t now;
    int count = 0;
    all->number++;
    all->read_bytes = 0;
    all->handshakes = 0;
    h2o_linklist_init_anchor(&now);
    h2o_linklist_insert_list(&now, &all->waiting);
    while (!h2o_linklist_is_empty(&now)) {
        turn_share *share = H2O_STRUCT_FROM_MEMBER(turn_share, link, now.next);
        h2o_linklist_unlink(&share->link);
        assert(share->turn < all->number);
        share->go_on(share);
        count++;
    }
    return count;
}
