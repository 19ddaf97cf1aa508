#include <criterion/criterion.h>

#include "server/http1/overrides/media_types.h"

Test(media_types, the_library_knows_no_file_extension)
{
    media_types_install();
    h2o_mimemap_t *table = h2o_mimemap_create();
    const h2o_mimemap_type_t *unknown = h2o_mimemap_get_default_type(table);
    cr_assert_eq(h2o_mimemap_get_type_by_extension(table, h2o_iovec_init(H2O_STRLIT("html"))),
                 unknown);
    cr_assert_eq(h2o_mimemap_get_type_by_extension(table, h2o_iovec_init(H2O_STRLIT("none"))),
                 unknown);
    h2o_mem_release_shared(table);
}
