#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "base/large_memory.h"
#include "server/protocol/compress.h"

Test(coding, bodies_survive_both_ways)
{
    for (int coding = CODING_GZIP; coding <= CODING_DEFLATE; coding++) {
        char data[10000], *packed, *room = NULL;
        size_t packed_bytes, back_bytes, room_bytes = 0;
        for (size_t i = 0; i < sizeof(data); i++)
            data[i] = (char)("0123,. "[i * i % 7]);
        compress_piece pieces[] = {{data, 4000}, {data + 4000, 0}, {data + 4000, 6000}};
        cr_assert_eq(compress_pieces(coding, pieces, 3, &packed, &packed_bytes), STATUS_OK);
        cr_assert_eq(decompress(coding, packed, packed_bytes, 10000, NULL, NULL, &room, &room_bytes,
                                &back_bytes),
                     STATUS_OK);
        cr_assert(back_bytes == sizeof(data) && memcmp(room, data, sizeof(data)) == 0);
        cr_assert_eq(decompress(coding, packed, packed_bytes, 9999, NULL, NULL, &room, &room_bytes,
                                &back_bytes),
                     STATUS_TOO_LARGE);
        cr_assert_eq(decompress(coding, packed, packed_bytes - 1, 20000, NULL, NULL, &room,
                                &room_bytes, &back_bytes),
                     STATUS_INVALID_ARGUMENT);
        packed[packed_bytes / 2] ^= 0x55;
        cr_assert_eq(decompress(coding, packed, packed_bytes, 20000, NULL, NULL, &room, &room_bytes,
                                &back_bytes),
                     STATUS_INVALID_ARGUMENT);
        free(packed);
        large_memory_free(room, room_bytes);
    }
}

Test(coding, headers_are_understood)
{
    cr_assert_eq(content_coding_parse("GZIP", 4), CODING_GZIP);
    cr_assert_eq(content_coding_parse("br", 2), CODING_UNKNOWN);
    static const struct {
        const char *accept;
        content_coding chosen;
    } cases[] = {{"", CODING_IDENTITY},           {"deflate", CODING_DEFLATE},
                 {"deflate, gzip", CODING_GZIP},  {"gzip;q=0, deflate;q=0.5", CODING_DEFLATE},
                 {"gzip;q=0.0", CODING_IDENTITY}, {"br", CODING_IDENTITY}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        cr_assert_eq(content_coding_choose(cases[i].accept, strlen(cases[i].accept)),
                     cases[i].chosen, "%s", cases[i].accept);
}

Test(coding, decompressing_ends_when_it_is_cancelled)
{
    size_t bytes = (size_t)8 << 20, packed_bytes, back_bytes, room_bytes = 0;
    char *data = calloc(1, bytes), *packed, *room = NULL;
    compress_piece piece = {data, bytes};
    cancel_token cancelled = {.is_requested = true};
    cr_assert_eq(compress_pieces(CODING_GZIP, &piece, 1, &packed, &packed_bytes), STATUS_OK);
    cr_assert_eq(decompress(CODING_GZIP, packed, packed_bytes, bytes, &cancelled, NULL, &room,
                            &room_bytes, &back_bytes),
                 STATUS_CANCELLED);
    cr_assert_lt(room_bytes, bytes / 2, "at the first step");
    free(data);
    free(packed);
    large_memory_free(room, room_bytes);
}

Test(coding, what_is_decompressed_is_counted_and_may_be_refused)
{
    size_t bytes = (size_t)8 << 20, packed_bytes, back_bytes, room_bytes = 0;
    char *data = calloc(1, bytes), *packed, *room = NULL;
    compress_piece piece = {data, bytes};
    budget all;
    budget_account connection, loan;
    budget_limits limits = {4 << 20, 64 << 20, 64 << 20, 10};
    cr_assert_eq(budget_init(&all, &limits), STATUS_OK);
    cr_assert_eq(budget_open(&all, &connection, NULL), STATUS_OK);
    budget_lend(&connection, &loan);
    cr_assert_eq(compress_pieces(CODING_GZIP, &piece, 1, &packed, &packed_bytes), STATUS_OK);
    cr_assert_eq(decompress(CODING_GZIP, packed, packed_bytes, bytes, NULL, &loan, &room,
                            &room_bytes, &back_bytes),
                 STATUS_UNAVAILABLE);
    cr_expect(room_bytes > 0 && loan.bytes == room_bytes && all.bytes >= room_bytes);
    budget_return(&loan);
    cr_expect_eq(all.bytes, 0);
    budget_close(&connection);
    budget_dispose(&all);
    free(data);
    free(packed);
    large_memory_free(room, room_bytes);
}
