"""bench/tpu/llo.py counts the bundles of a schedule: on a small dump in the form of libtpu's, written here."""
import sys

import pytest
import serving

sys.path.insert(0, str(serving.ROOT / "bench/tpu"))
import llo  # noqa: E402

KEY = "= control target key start\nLH: loop header\nLB: loop body\n= control target key end\n\n"
UNITS = ["MATMUL", "MATPUSH", "XLU", "VALU", "VPOP", "EUP", "VLOAD", "VLOAD:FILL", "VSTORE", "VSTORE:SPILL", "SALU"]
SLOTS = [4, 4, 3, 4, 2, 1, 3, 3, 1, 1, 2]


def bundles(*lines):
    """Lines of bundles; those without a mark get none."""
    marks = [line if line.startswith(("LB:", "PF:")) else f"  : {line}" for line in lines]
    return KEY + "".join(f" {'0x' if i else ''}{i:x} {m.replace('LB:', 'LB: >', 1).replace('PF:', 'PF: >', 1) if m[0] in 'LP' else m}\n" for i, m in enumerate(marks))


# Three stages: the counter runs from 0 to 5, the body where it is 1 to 4; two delay slots behind each branch.
PIPELINED = bundles(
    "{ %s20_s1 = smov.u32 0 /* copy */ }",
    "LB: { %p1_p0 = scmp.ge.s32.totalorder %s21_s1, 1  ;;  %p2_p1 = scmp.lt.s32.totalorder %s21_s1, 5  ;;  %s21_s1 = sphi %s20_s1, %s22_s1 } /* Start region 7 :: Start region 8 */",
    "{ %p3_p2 = pnand %p1_p0, %p2_p1 }",
    "{ %9 = sbr.rel (%p3_p2) target = $region9 }",
    "{}",
    "{} /* End region 8 */",
    "{ %v1_v0 = vadd.f32 %v2_v1, %v3_v2  ;;  %v4_v3 = vld [vmem:[%s5_s5]] } /* a comment\nof two lines */",
    "{ %10 = vmatmul.bf16.gmra.mxu0 %v1_v0 }",
    "PF: { %s22_s1 = sadd.s32 1, %s21_s1 } /* Start/End empty region 9 :: Start region 10 */",
    "{ %p4_p3 = scmp.ge.s32.totalorder %s22_s1, 6 /* loop exit test */ }",
    "{ %11 = sbr.rel (!%p4_p3) target = $region7 }",
    "{}",
    "{} /* End region 7 */",
    "{ %12 = vsyncpa [#allocation1], 1 }",
)  # fmt: skip


def use(bundle):
    return [int(word in bundle) for word in ("vmatmul", "vmatpush", "vxpose", "vadd", "vpop", "verf", "vld", "fill", "vst", "spill", "sadd")]


def write(folder, stamp, name, text):
    count = len([line for line in text.splitlines() if llo.LINE.match(line)])
    rows = [use(part) for part in text.split("key end\n\n")[1].split("\n ")]
    (folder / f"{stamp}-{name}-72-final_bundles.txt").write_text(text)
    assert len(rows) == count
    header = "== CAPACTIY:\n" + ", ".join(UNITS) + "\n" + " ".join(map(str, SLOTS)) + "\n== UTILIZATION:\n"
    (folder / f"{stamp}-{name}-70-final_hlo-static-per-bundle-utilization.txt").write_text(header + "".join(" ".join(map(str, r)) + "\n" for r in rows))
    (folder / f"{stamp}-{name}-71-schedule-analysis_final_bundles.txt").write_text("not read")


def finish(folder, stamp, estimates, instances):
    profile = "HLO: <no-hlo-instruction>\n - VECTOR_EUP: (0/9) - 0\n\n"
    profile += "HLO: %copy-start = (bf16[4,128]{1,0:T(8,128)S(1)}, bf16[4,128]{1,0}, u32[]{:S(2)}) copy-start(%a)\n"
    profile += "HLO: %copy-start.1 = (f32[9,9]{1,0:T(8,128)S(1)}, f32[9,9]{1,0}, u32[]{:S(2)}) copy-start(%a), cross_program_prefetch_index=0\n"
    for name, cycles in estimates.items():
        estimate = f', backend_config={{"estimated_cycles":"{cycles}"}}' if cycles else ""
        profile += f"HLO: %{name} = f32[8]{{0}} fusion(%x){estimate}\n - MXU_0 matmul: (0/4) - 0\n - MXU_0 matmul_packed: (1/2) - 0.5\n"
        profile += " - VECTOR_EUP: (0/32) - 0\n\n"
    (folder / f"{stamp}-TLP-74-hlo-static-bundle-profile.txt").write_text(profile)
    text = "".join(f"key:{name}\nordinal:1\nequivalent_hlos[size={count}]:\n" + "".join(f"  {name}.{i}\n" for i in range(count)) for name, count in instances.items())
    (folder / f"{stamp}-TLP-00-deduplication-map.txt").write_text(text)


def test_a_software_pipeline_is_counted_as_often_as_it_runs():
    parsed = llo.parse_function(PIPELINED)
    assert llo.delay_slots([parsed]) == 2 and len(parsed) == 14
    counts, unknown = llo.issued(parsed, 2)
    # Six rounds, of which the body takes part in four.
    assert counts == [1] + 5 * [6] + 2 * [4] + 5 * [6] + [1] and unknown == 0


def test_a_loop_within_a_loop_with_its_bound_in_memory():
    text = bundles(
        "{ %1 = sst [smem:[#allocation9_spill]] %s30_s9  ;;  %s30_s9 = smov.u32 3 }",
        "{ %2 = sst [smem:[#allocation9_spill]] %s30_s9  ;;  %s31_s1 = smov.u32 0 }",
        "LB: { %s32_s1 = sphi %s31_s1, %s33_s1  ;;  %s40_s2 = smov.u32 4294967294 } /* Start region 1 */",
        "LB: { %s41_s2 = sphi %s40_s2, %s42_s2 } /* Start region 2 */",
        "{ %s42_s2 = sadd.s32 1, %s41_s2 }",
        "{ %p1_p0 = scmp.lt.s32.totalorder %s42_s2, 2 }",
        "{ %3 = sbr.rel (%p1_p0) target = $region2 }",
        "{} /* End region 2 */",
        "{ %s33_s1 = sadd.s32 1, %s32_s1  ;;  %s34_s3 = sld [smem:[#allocation9_spill]] }",
        "{ %p2_p1 = scmp.lt.s32.totalorder %s33_s1, %s34_s3 }",
        "{ %4 = sbr.rel (%p2_p1) target = $region1 }",
        "{} /* End region 1 */",
    )
    counts, unknown = llo.issued(llo.parse_function(text), 1)
    assert counts == [1, 1, 3] + 5 * [12] + 4 * [3] and unknown == 0


def test_what_only_data_decides_is_unknown():
    text = bundles(
        "{ %s1_s1 = sld [smem:[#allocation3]] /* an id */ }",
        "{ %p1_p0 = scmp.eq.s32.totalorder %s1_s1, 7 }",
        "{ %3 = sbr.rel (%p1_p0) target = $region5 }",
        "{} /* End region 1 */",
        "{ %s2_s2 = smov.u32 1 }",
        "{} /* Start region 5 */",
    )
    assert llo.issued(llo.parse_function(text), 1) == ([1] * 6, 1)
    endless = bundles("{} /* Start region 1 */", "{ %3 = sbr.rel target = $region1 }", "{} /* End region 1 */")
    with pytest.raises(ValueError, match="does not end"):
        llo.STEPS_MAX, kept = 1000, llo.STEPS_MAX
        try:
            llo.issued(llo.parse_function(endless), 1)
        finally:
            llo.STEPS_MAX = kept


def test_a_dump_of_two_programs(tmp_path):
    write(tmp_path, 11, "fusion.1", PIPELINED)
    write(tmp_path, 12, "copy.2", bundles("{ %v1_v0 = vld [vmem:[%s1_s1]]  ;;  %s9_s9 = inlined_call_operand.hbm [shape: f32[8,2], index: 0] }", "{ %1 = vst [vmem:[%s1_s1]] %v1_v0 }"))
    finish(tmp_path, 10, {"fusion.1": 100, "copy.2": None}, {"fusion.1": 3, "copy.2": 1})
    write(tmp_path, 21, "fusion.1", bundles("{ %1 = vmatmul.bf16.gmra.mxu0 %v1_v0  ;;  %2 = vmatmul.bf16.gmra.mxu1 %v1_v0 }"))
    finish(tmp_path, 20, {"fusion.1": 7}, {"fusion.1": 1})
    first, second = (p.summary() for p in llo.read_dump(tmp_path))
    # 1 + 5 x 6 + 2 x 4 + 5 x 6 + 1 bundles; a vector addition in four of them, which has four slots.
    (fusion,) = first["functions"]
    assert (fusion["cycles"], fusion["instances"], fusion["limit"]) == (70, 3, "matrix")
    assert (first["estimates_read"], first["scheduled_cycles"], first["without_estimate"]) == (300, 210, 2)
    assert first["busy"]["vector ALU"] == round(4 / 4 / 70, 3) and first["busy"]["vector load"] == round(4 / 3 / 70, 3)
    # Four instructions of 16 cycles each, on four units; what goes to the next program is not counted.
    assert first["busy"]["matrix"] == round(4 * 16 / 4 / 70, 3) and first["hbm_bytes"] == 4 * 128 * 2
    # One bundle feeds two of the four matrix units, which need 16 cycles: 8 in the mean.
    assert (second["scheduled_cycles"], second["functions"][0]["share"]) == (8, 1.0)
