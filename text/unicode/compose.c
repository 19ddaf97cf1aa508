#include "text/unicode/compose.h"

#include <assert.h>
#include <utf8proc.h>

#include "text/unicode/properties.h"

unsigned unicode_decompose(uint32_t code, bool is_compatible, int32_t parts[UNICODE_PARTS_MAX])
{
    unsigned has = is_compatible ? UNICODE_DECOMPOSES_COMPATIBLY : UNICODE_DECOMPOSES;
    parts[0] = (int32_t)code;
    if (!(unicode_properties(code) & has))
        return 1;
    int options = UTF8PROC_DECOMPOSE | (is_compatible ? UTF8PROC_COMPAT : 0), boundary = 0;
    utf8proc_ssize_t count =
        utf8proc_decompose_char((int32_t)code, parts, UNICODE_PARTS_MAX, options, &boundary);
    assert(count >= 1 && count <= UNICODE_PARTS_MAX);
    return (unsigned)count;
}

unsigned unicode_combining_class(uint32_t code)
{
    if (!(unicode_properties(code) & UNICODE_REORDERS))
        return 0;
    return (unsigned)utf8proc_get_property((int32_t)code)->combining_class;
}

uint32_t unicode_compose(uint32_t first, uint32_t second)
{
    int32_t pair[3] = {(int32_t)first, (int32_t)second, 0};
    if (!(unicode_properties(second) & UNICODE_SECOND))
        return 0;
    if (utf8proc_normalize_utf32(pair, 2, UTF8PROC_COMPOSE | UTF8PROC_STABLE) != 1)
        return 0;
    return unicode_properties((uint32_t)pair[0]) & UNICODE_DECOMPOSES ? (uint32_t)pair[0] : 0;
}
