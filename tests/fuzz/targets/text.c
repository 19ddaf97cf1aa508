/* Small parsers of the server: numbers, paths, compressed bodies. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/large_memory.h"
#include "server/protocol/compress.h"
#include "server/protocol/route.h"
#include "server/protocol/text/number_scan.h"
#include "tests/fuzz/fuzz.h"

/* Numbers are those of strtod() and strtof(), which round correctly. */
void fuzz_numbers(const uint8_t *data, size_t bytes)
{
    char text[512];
    number n;
    const char *begin = (const char *)data;
    const char *end = number_scan(begin, begin + bytes, &n);
    if (end == NULL || n.kind != NUMBER_DECIMAL)
        return;
    assert(end > begin && end <= begin + bytes && n.text == begin);
    assert(n.text_bytes == (size_t)(end - begin));
    if (n.text_bytes >= sizeof text)
        return;
    memcpy(text, n.text, n.text_bytes);
    text[n.text_bytes] = 0;
    double wide = strtod(text, NULL), our_wide = number_to_f64(&n);
    float narrow = strtof(text, NULL), our_narrow = number_to_f32(&n);
    assert(memcmp(&wide, &our_wide, sizeof wide) == 0);
    assert(memcmp(&narrow, &our_narrow, sizeof narrow) == 0);
    int64_t i = 0;
    uint64_t u = 0;
    if (number_to_i64(&n, &i) && fabs(wide) < 9007199254740992.0)
        assert((double)i == wide);
    if (number_to_u64(&n, &u) && fabs(wide) < 9007199254740992.0)
        assert((double)u == wide);
}

void fuzz_route(const uint8_t *data, size_t bytes)
{
    route r;
    route_parse((const char *)data, bytes, &r);
    assert(r.kind >= ROUTE_UNKNOWN && r.kind < ROUTE_KIND_COUNT);
    assert(r.name_bytes < ROUTE_NAME_BYTES && r.label_bytes < ROUTE_NAME_BYTES);
    assert(r.version >= 0);
}

#define UNPACKED_BYTES_MAX 100000

/* Unpacking never passes its limit, and what was packed comes back. */
void fuzz_compress(const uint8_t *data, size_t bytes)
{
    fuzz_input in = {data, bytes};
    uint8_t options = fuzz_take_byte(&in);
    content_coding coding = options & 1 ? CODING_GZIP : CODING_DEFLATE;
    const char *text = (const char *)in.data;
    char *room = NULL, *packed = NULL;
    size_t room_bytes = 0, out_bytes = 0, packed_bytes = 0;
    assert(content_coding_parse(text, in.bytes) <= CODING_UNKNOWN);
    assert(content_coding_choose(text, in.bytes) < CODING_UNKNOWN);
    if (decompress(coding, text, in.bytes, UNPACKED_BYTES_MAX, NULL, NULL, &room, &room_bytes,
                   &out_bytes) == STATUS_OK)
        assert(out_bytes <= UNPACKED_BYTES_MAX && out_bytes <= room_bytes);
    compress_piece pieces[] = {{text, in.bytes / 3},
                               {text + in.bytes / 3, in.bytes - in.bytes / 3}};
    if (compress_pieces(coding, pieces, 2, &packed, &packed_bytes) == STATUS_OK) {
        status failure = decompress(coding, packed, packed_bytes, in.bytes, NULL, NULL, &room,
                                    &room_bytes, &out_bytes);
        assert(!failure && out_bytes == in.bytes);
        assert(in.bytes == 0 || memcmp(room, text, in.bytes) == 0);
    }
    free(packed);
    large_memory_free(room, room_bytes);
}
