#include "devices/pjrt/schedule/bundles.h"

#include <criterion/criterion.h>
#include <string.h>

#define KEY "= control target key start\nLB: loop body\n= control target key end\n\n"

static bundles *parse(const char *text)
{
    bundles *b;
    cr_assert_eq(bundles_parse(text, strlen(text), &b), STATUS_OK, "%s", status_message());
    return b;
}

static bundles_issued run(const char *text, int delay)
{
    bundles_issued issued;
    bundles *b = parse(text);
    cr_assert_eq(bundles_run(b, delay, &issued), STATUS_OK, "%s", status_message());
    bundles_destroy(b);
    return issued;
}

/* The counter runs from 0 to 5, the body where it is 1 to 4; two delay slots behind each branch. */
static const char pipelined[] =
    KEY "     0   :  { %s20_s1 = smov.u32 0 /* copy */ }\n"
        "   0x1 LB: > { %p1_p0 = scmp.ge.s32.totalorder %s21_s1, 1  ;;  %p2_p1 = "
        "scmp.lt.s32.totalorder "
        "%s21_s1, 5  ;;  %s21_s1 = sphi %s20_s1, %s22_s1 } /* Start region 7 :: Start region 8 */\n"
        "   0x2   : > { %p3_p2 = pnand %p1_p0, %p2_p1 }\n"
        "   0x3   : > { %9 = sbr.rel (%p3_p2) target = $region9 }\n"
        "   0x4   : > {}\n"
        "   0x5   : > {} /* End region 8 */\n"
        "   0x6   : >> { %v1_v0 = vadd.f32 %v2_v1, %v3_v2  ;;  %v4_v3 = vld [vmem:[%s5_s5]] } /* a "
        "comment\nof two lines */\n"
        "   0x7   : >> { %10 = vmatmul.bf16.gmra.mxu0 %v1_v0 /* no vmatmul.f32 */ }\n"
        "   0x8 PF: > { %s22_s1 = sadd.s32 1, %s21_s1 } /* Start/End empty region 9 */\n"
        "   0x9   : > { %p4_p3 = scmp.ge.s32.totalorder %s22_s1, 6 /* loop exit test */ }\n"
        "   0xa   : > { %11 = sbr.rel (!%p4_p3) target = $region7 } /* End region 3 */\n"
        "   0xb   : > {}\n"
        "   0xc   : > {} /* End region 7 */\n"
        "   0xd   :  { %12 = vsyncpa [#allocation1], 1 }\n";

Test(bundles, a_software_pipeline_is_counted_as_often_as_it_runs)
{
    int delays[BUNDLES_DELAY_MAX + 1] = {0};
    bundles *b = parse(pipelined);
    bundles_count_delays(b, delays);
    cr_assert_eq(delays[2], 2); /* not the region that ends with the branch itself */
    bundles_destroy(b);
    bundles_issued issued = run(pipelined, 2);
    cr_assert_eq(issued.bundles, 1 + 5 * 6 + 2 * 4 + 5 * 6 + 1);
    cr_assert_eq(issued.products, 4);
    cr_assert_eq(issued.unknown_branches, 0);
}

Test(bundles, a_loop_within_a_loop_has_its_bound_in_memory)
{
    const char text[] =
        KEY "  0   :  { %1 = sst [smem:[#allocation9_spill]] %s30_s9  ;;  %s30_s9 = smov.u32 3 }\n"
            " 0x1   :  { %2 = sst [smem:[#allocation9_spill]] %s30_s9  ;;  %s31_s1 = smov.u32 0 }\n"
            " 0x2 LB: { %s32_s1 = sphi %s31_s1, %s33_s1  ;;  %s40_s2 = smov.u32 4294967294 } /* "
            "Start region 1 */\n"
            " 0x3 LB: { %s41_s2 = sphi %s40_s2, %s42_s2 } /* Start region 2 */\n"
            " 0x4   : { %s42_s2 = sadd.s32 1, %s41_s2 }\n"
            " 0x5   : { %p1_p0 = scmp.lt.s32.totalorder %s42_s2, 2 }\n"
            " 0x6   : { %3 = sbr.rel (%p1_p0) target = $region2 }\n"
            " 0x7   : {} /* End region 2 */\n"
            " 0x8   : { %s33_s1 = sadd.s32 1, %s32_s1  ;;  %s34_s3 = sld "
            "[smem:[#allocation9_spill]] }\n"
            " 0x9   : { %p2_p1 = scmp.lt.s32.totalorder %s33_s1, %s34_s3 }\n"
            " 0xa   : { %4 = sbr.rel (%p2_p1) target = $region1 }\n"
            " 0xb   : {} /* End region 1 */\n";
    bundles_issued issued = run(text, 1);
    cr_assert_eq(issued.bundles, 1 + 1 + 3 + 5 * 12 + 4 * 3);
}

Test(bundles, what_only_data_decides_is_unknown_and_not_taken)
{
    const char text[] = KEY "  0   : { %s1_s1 = sld [smem:[#allocation3]] /* an id */ }\n"
                            " 0x1   : { %p1_p0 = scmp.eq.s32.totalorder %s1_s1, 7 }\n"
                            " 0x2   : { %3 = sbr.rel (%p1_p0) target = $region5 }\n"
                            " 0x3   : {} /* End region 1 */\n"
                            " 0x4   : { %s2_s2 = smov.u32 1 }\n"
                            " 0x5   : {} /* Start region 5 */\n";
    bundles_issued issued = run(text, 1);
    cr_assert_eq(issued.bundles, 6);
    cr_assert_eq(issued.unknown_branches, 1);
}

Test(bundles, arithmetic_of_the_scalar_unit)
{
    /* 5 rounds of a counter that is made in roundabout ways, else 1. */
    const char text[] =
        KEY "  0   : { %s1_s0 = smov.u32 12  ;;  %p1_p0 = scmp.lt.u32.totalorder 3, 4294967295 }\n"
            " 0x1   : { %s2_s1 = sshrl.u32 %s1_s0, 2  ;;  %p2_p1 = pneg %p1_p0 }\n"
            " 0x2   : { %s3_s2 = scalar_select %p2_p1, 9, %s2_s1  ;;  %s9_s9 = smov.u32 0 }\n"
            " 0x3   : { %s4_s3 = smul.u32 %s3_s2, 4 }\n"
            " 0x4   : { %s5_s4 = ssub.s32 %s4_s3, 7 }\n"
            " 0x5 LB: { %s10_s9 = sphi %s9_s9, %s11_s9 } /* Start region 1 */\n"
            " 0x6   : { %s11_s9 = sadd.s32 1, %s10_s9 }\n"
            " 0x7   : { %p3_p2 = scmp.lt.s32.totalorder %s11_s9, %s5_s4 }\n"
            " 0x8   : { %4 = sbr.rel (%p3_p2) target = $region1 }\n"
            " 0x9   : {} /* End region 1 */\n";
    cr_assert_eq(run(text, 1).bundles, 5 + 5 * 5);
}

Test(bundles, damaged_and_endless_ones_are_rejected)
{
    bundles *b;
    bundles_issued issued;
    const char broken[] = KEY "  0   : { %s1_s0 = smov.u32 12\n";
    const char endless[] = KEY "  0   : {} /* Start region 1 */\n"
                               " 0x1   : { %3 = sbr.rel target = $region1 }\n"
                               " 0x2   : {} /* End region 1 */\n";
    cr_assert_eq(bundles_parse(broken, strlen(broken), &b), STATUS_CORRUPT);
    b = parse(endless);
    cr_assert_eq(bundles_run(b, 1, &issued), STATUS_CORRUPT);
    bundles_destroy(b);
    cr_assert_eq(run("", 0).bundles, 0);
}
