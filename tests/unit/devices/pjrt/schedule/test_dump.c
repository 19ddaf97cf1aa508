/* A small dump in the form of libtpu's; tests/pjrt/test_bundles.py has the same for llo.py. */
#include "devices/pjrt/schedule/dump.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/temporary.h"

static void put(const char *folder, const char *name, const char *text)
{
    char path[TEMPORARY_FOLDER_BYTES + 200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(text, f);
    fclose(f);
}

static void put_units(const char *folder, const char *name)
{
    put(folder, name, "== CAPACTIY:\nMATMUL, MATPUSH, XLU\n   4     4     3 \n== UTILIZATION:\n");
}

#define EXECUTABLE "HLO: <no-hlo-instruction>\n - VECTOR_EUP: (0/9) - 0\n\n"
#define FUSION                                                                                     \
    "HLO: %fusion.1 = f32[8]{0} fusion(%x), backend_config={\"estimated_cycles\":\"100\"}\n"       \
    " - MXU_0 matmul: (0/4) - 0\n - MXU_0 matmul_packed: (1/2) - 0.5\n"                            \
    " - MXU_0 matpush: (3/4) - 0.75\n - VECTOR_EUP: (0/32) - 0\n\n"
#define LINES " 0x1   : {}\n 0x2   : {}\n"

static int files_in(const char *folder)
{
    int count = 0;
    DIR *d = opendir(folder);
    cr_assert_not_null(d);
    for (struct dirent *e; (e = readdir(d)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(d);
    return count;
}

static void put_program(const char *folder)
{
    put(folder, "11-fusion.1-72-final_bundles.txt",
        "key\n  0   : { %s9_s9 = inlined_call_operand.hbm [shape: f32[8,2], index: 0] }\n" LINES);
    put(folder, "11-fusion.1-71-schedule-analysis_final_bundles.txt", "not read");
    put(folder, "12-copy.2-72-final_bundles.txt", " 0   : {}\n" LINES);
    put(folder, "10-TLP-73-final_bundles.txt", " 0   : {}\n" LINES);
    put(folder, "10-<late-initialization>-73-final_bundles.txt", " 0   : {}\n" LINES);
    put_units(folder, "11-fusion.1-70-final_hlo-static-per-bundle-utilization.txt");
    put(folder, "10-TLP-74-hlo-static-bundle-profile.txt",
        EXECUTABLE
        "HLO: %copy-start = (bf16[4,128]{1,0:T(8,128)S(1)}, bf16[4,128]{1,0}) copy-start(%a)\n"
        "HLO: %copy-start.1 = (f32[9,9]{1,0:T(8,128)S(1)}, f32[9,9]{1,0}) copy-start(%a), "
        "cross_program_prefetch_index=0\n"
        "HLO: %copy.2 = f32[8]{0} copy(%x)\n" FUSION);
    put(folder, "10-TLP-00-deduplication-map.txt",
        "key:copy.2\nequivalent_hlos[size=1]:\n  copy.2\n"
        "key:fusion.1\nequivalent_hlos[size=3]:\n  fusion.1\n  fusion.4\n  fusion.5\n");
}

Test(dump, is_counted_and_emptied_program_by_program)
{
    char folder[TEMPORARY_FOLDER_BYTES];
    schedule_facts found;
    temporary_make(folder);
    put_program(folder);
    cr_assert_eq(schedule_dump_read(folder, &found), STATUS_OK, "%s", status_message());
    /* Three instructions of three bundles each; copies have no estimate. */
    cr_assert_eq(found.cycles, 9);
    cr_assert_eq(found.hbm_bytes, 4 * 128 * 2 + 3 * 8 * 2 * 4);
    cr_assert_eq(files_in(folder), 0);
    /* A matrix unit takes 16 cycles for an instruction; there are four of them. */
    put(folder, "21-fusion.1-72-final_bundles.txt",
        " 0   : { %1 = vmatmul.bf16.gmra.mxu0 %v1_v0  ;;  %2 = vmatmul.bf16.gmra.mxu1 %v1_v0 }\n");
    put(folder, "20-TLP-74-hlo-static-bundle-profile.txt", EXECUTABLE FUSION);
    cr_assert_eq(schedule_dump_read(folder, &found), STATUS_OK);
    cr_assert_eq(found.cycles, 8);
    cr_assert_eq(schedule_dump_read(folder, &found), STATUS_NOT_FOUND);
    temporary_remove(folder);
}

Test(dump, is_asked_for_beside_what_else_is_asked)
{
    char folder[256];
    setenv("LIBTPU_INIT_ARGS", "--one=1", 1);
    cr_assert_eq(schedule_dump_start(folder), STATUS_OK);
    const char *flags = getenv("LIBTPU_INIT_ARGS");
    cr_assert(strncmp(flags, "--one=1 --xla_jf_dump_to=", 25) == 0 && strstr(flags, folder));
    put(folder, "a", "b");
    schedule_dump_end(folder);
    cr_assert_null(opendir(folder));
    setenv("TMPDIR", "/nowhere", 1);
    cr_assert_eq(schedule_dump_start(folder), STATUS_IO);
}
