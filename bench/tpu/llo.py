"""Reads the schedules that libtpu dumps (LIBTPU_INIT_ARGS="--xla_jf_dump_to=DIR --xla_jf_dump_llo_text=true --xla_jf_dump_hlo_text=true") and
counts the bundles that one execution issues.

A function (most often a fusion) is a list of VLIW bundles; a core issues one bundle a cycle. Which bundles run, and how often, is found by running
the scalar part of the function: counters, comparisons and branches. What the core cannot know before it runs, such as an id that a gather has
read, is unknown here; a branch that depends on it is not taken, and counted in `unknown_branches`. Waiting for memory is not in the count.

Bytes that operations and asynchronous copies move between HBM and the core's memory are summed apart, without a prefetch for the next program.

What stands in the files that are read, by name:
    *TLP-*-deduplication-map.txt                       instructions that share one function
    *TLP-*-hlo-static-bundle-profile.txt               each function's HLO with its estimate; what each unit could do in its bundles
    *-NAME-*-final_bundles.txt                         the bundles
    *-NAME-*-final_hlo-static-per-bundle-utilization.txt   operations of each unit in each bundle
"""
import re
from dataclasses import dataclass, field

READ = ("-final_bundles.txt", "-final_hlo-static-per-bundle-utilization.txt", "-hlo-static-bundle-profile.txt", "-deduplication-map.txt")
STEPS_MAX = 20_000_000
UNITS = dict(
    MATMUL="matrix", MATPUSH="matrix weights", XLU="cross-lane", VALU="vector ALU", VPOP="result pops", EUP="transcendental", VLOAD="vector load",
    VSTORE="vector store", SALU="scalar",
)  # fmt: skip
WORD = 1 << 32
BITS = dict(pred=8, s8=8, u8=8, s4=4, u4=4, bf16=16, f16=16, s16=16, u16=16, f32=32, s32=32, u32=32, f64=64, s64=64, u64=64)


def is_read(name):
    return name.endswith(READ) and "schedule-analysis" not in name


def bytes_of(shape):
    """Of 'bf16[384,1536]'."""
    kind, _, dims = shape.rstrip("]").partition("[")
    count = BITS.get(kind, 8)
    for dim in filter(None, dims.split(",")):
        count *= int(dim)
    return count // 8


# --- one function ---


@dataclass
class Bundle:
    phis: list = field(default_factory=list)  # (name, names)
    steps: list = field(default_factory=list)  # (name, operation, operands, predicate)
    branch: tuple = None  # (predicate, region)
    products: int = 0  # instructions that feed a matrix unit
    starts: list = field(default_factory=list)  # regions
    ends_region: bool = False


LINE = re.compile(r"^\s*(?:0x)?[0-9a-f]+\s+(?:[A-Z]{2})?\s*: ")
ASSIGNED = re.compile(r"^(%[a-z]+[0-9]+(?:_[a-z]+[0-9]+)?) = ([a-z_0-9]+)((?:\.[a-z0-9_]+)*)\s*(.*)$", re.S)
PREDICATE = re.compile(r"\((!?)(%p[0-9]+(?:_p[0-9]+)?)\)")


def without_comments(text):
    return re.sub(r"/\*.*?\*/", "", text, flags=re.S)


def parse_step(text, bundle):
    is_core_id = "megacore core id" in text
    text = without_comments(text).strip()
    predicate = PREDICATE.search(text)
    predicate = (predicate[1] == "!", predicate[2]) if predicate else None
    if "sbr.rel" in text:
        target = re.search(r"target = \$region(\d+)", text)
        bundle.branch = (predicate, int(target[1]))
        return
    stored = re.search(r"\bsst \[smem:\[(.*?)\]\](?: \(.*?\))? (%\S+)", text)
    if stored:
        bundle.steps.append(("[" + stored[1] + "]", "move", [stored[2]], predicate))
        return
    match = ASSIGNED.match(text)
    if not match or match[1][1] not in "sp":
        return
    name, operation, _, rest = match.groups()
    if operation == "sld" and is_core_id:
        bundle.steps.append((name, "move", ["0"], None))  # the first core of two
        return
    if operation == "sld":
        address = re.search(r"\[smem:\[(.*?)\]\]", rest)
        bundle.steps.append((name, "move", ["[" + address[1] + "]"] if address else [], predicate))
        return
    operands = [p.strip() for p in PREDICATE.sub("", rest).split(",") if p.strip()]
    if operation == "sphi":
        bundle.phis.append((name, operands))
    else:
        bundle.steps.append((name, operation + match[3], operands, predicate))


def parse_function(text):
    """The bundles of a *-final_bundles.txt."""
    bundles, lines = [], []
    for line in text.splitlines():
        if LINE.match(line):
            lines.append(line)
        elif lines:
            lines[-1] += "\n" + line  # a comment with a line's end
    for line in lines:
        bundle = Bundle()
        at, end = line.index("{"), line.rindex("}")
        for step in line[at + 1 : end].split(";;"):
            parse_step(step, bundle)
        bundle.products = len(re.findall(r"\bvmatmul\b", without_comments(line)))
        marks = line[end:]
        bundle.starts = [int(n) for n in re.findall(r"Start(?:/End empty)? region (\d+)", marks)]
        bundle.ends_region = re.search(r"\bEnd region", marks) is not None
        bundles.append(bundle)
    return bundles


def delay_slots(functions):
    """Bundles that still run behind a taken branch: the usual distance from a branch to the end of the region behind it."""
    distances = {}
    for bundles in functions:
        for i, bundle in enumerate(bundles):
            if bundle.branch:
                behind = next((k - i for k in range(i + 1, len(bundles)) if bundles[k].ends_region), 0)
                distances[behind] = distances.get(behind, 0) + 1
    return max(distances, key=lambda n: (distances[n], n)) if distances else 0


def signed(value):
    return value - WORD if value >= WORD // 2 else value


COMPARE = dict(lt=lambda a, b: a < b, le=lambda a, b: a <= b, gt=lambda a, b: a > b, ge=lambda a, b: a >= b, eq=lambda a, b: a == b, ne=lambda a, b: a != b)


def operate(operation, x):
    """The value of a scalar operation, None where it is unknown."""
    kind, *types = operation.split(".")
    if kind in ("pnand", "por", "pand"):  # known as soon as one operand decides
        a, b = x
        decides = kind == "por"
        if (a is not None and bool(a) == decides) or (b is not None and bool(b) == decides):
            result = int(decides)
        elif a is None or b is None:
            return None
        else:
            result = int(not decides)
        return 1 - result if kind == "pnand" else result
    if any(v is None for v in x):
        return None
    if kind in ("move", "smov", "pmov", "sphi", "int_to_ptr"):
        return x[0]
    if kind == "pneg":
        return int(not x[0])
    if kind == "scalar_select":
        return x[1] if x[0] else x[2]
    if kind == "scmp":
        a, b = (x[0], x[1]) if types[1] == "u32" else (signed(x[0]), signed(x[1]))
        return int(COMPARE[types[0]](a, b))
    if kind in ("sshll", "sshrl", "sshra"):
        a, n = x[0], min(x[1], 63)
        return ((a << n) if kind == "sshll" else (a >> n) if kind == "sshrl" else (signed(a) >> n)) % WORD
    two = dict(sadd=lambda a, b: a + b, ssub=lambda a, b: a - b, smul=lambda a, b: a * b, sand=lambda a, b: a & b, sor=lambda a, b: a | b,
               sxor=lambda a, b: a ^ b, scalar_lea=lambda a, b: a + b)  # fmt: skip
    return two[kind](x[0], x[1]) % WORD if kind in two and len(x) >= 2 else None


class Core:
    """The scalar state: values by name, and when each was assigned (a phi takes the latest of its operands)."""

    def __init__(self):
        self.values, self.times, self.now = {}, {}, 0

    def read(self, operand):
        if operand.startswith("%") or operand.startswith("["):
            return self.values.get(operand)
        return int(operand) % WORD if re.fullmatch(r"-?\d+", operand) else None

    def assign(self, name, value):
        self.now += 1
        self.values[name], self.times[name] = value, self.now

    def holds(self, predicate):
        """True, False, or None: unknown."""
        if predicate is None:
            return True
        value = self.read(predicate[1])
        return None if value is None else bool(value) != predicate[0]

    def issue(self, bundle):
        for name, operands in bundle.phis:
            source = max(operands, key=lambda operand: self.times.get(operand, 0))
            self.assign(name, self.read(source))
        results = []
        for name, operation, operands, predicate in bundle.steps:
            holds = self.holds(predicate)
            if holds is not False:
                results.append((name, operate(operation, [self.read(v) for v in operands]) if holds else None))
        for name, value in results:
            self.assign(name, value)


def issued(bundles, delay):
    """(how often each bundle is issued, how many branches were unknown)."""
    regions = {}
    for i, bundle in enumerate(bundles):
        for region in bundle.starts:
            regions.setdefault(region, i)
    # Only these change the scalar state; what lies between them runs through.
    active = [i for i, b in enumerate(bundles) if b.steps or b.phis or b.branch]
    following = {}
    at = 0
    for i in range(len(bundles) + 1):
        while at < len(active) and active[at] < i:
            at += 1
        following[i] = active[at] if at < len(active) else None
    changes = [0] * (len(bundles) + 1)
    core, position, unknown, steps, target, land = Core(), 0, 0, 0, None, None
    begin = 0
    while position < len(bundles):
        steps += 1
        if steps > STEPS_MAX:
            raise ValueError("a function that does not end")
        following_active = following[position]
        if land is not None and (following_active is None or following_active > land):
            position = land + 1  # the last delay slot has been issued
            changes[begin] += 1
            changes[min(position, len(bundles))] -= 1
            position = begin = target
            land = None
            continue
        if following_active is None:
            break
        bundle = bundles[following_active]
        core.issue(bundle)
        if bundle.branch:
            taken = core.holds(bundle.branch[0])
            unknown += taken is None
            if taken:
                if land is not None:
                    raise ValueError("a branch in another one's delay slots")
                land, target = following_active + delay, regions[bundle.branch[1]]
        position = following_active + 1
    changes[begin] += 1
    changes[len(bundles)] -= 1
    counts, running = [], 0
    for change in changes[:-1]:
        running += change
        counts.append(running)
    return counts, unknown


# --- a program ---


@dataclass
class Function:
    name: str
    instances: int  # instructions that run it
    estimated: int  # cycles of one of them, None: the compiler says nothing
    bundles: int  # issued by one of them
    unknown_branches: int
    busy: dict  # unit -> cycles
    hbm_bytes: int  # operands and results there

    def cycles(self):
        """Bundles may be issued faster than the matrix units take rows in: then the core waits for them."""
        return max(self.bundles, round(self.busy.get(UNITS["MATMUL"], 0)))

    def limit(self):
        return max(self.busy, key=self.busy.get)


@dataclass
class Program:
    functions: list
    copied_bytes: int  # by asynchronous copies, for this program

    def own(self):
        """Functions with an estimate: what the two witnesses both speak of."""
        return [f for f in self.functions if f.estimated]

    def summary(self):
        own = self.own()
        total = sum(f.cycles() * f.instances for f in own)
        busy = {u: sum(f.busy.get(u, 0) * f.instances for f in own) / max(total, 1) for u in UNITS.values()}
        functions = [
            dict(name=f.name, instances=f.instances, estimated=f.estimated, cycles=f.cycles(), limit=f.limit(), share=round(f.busy[f.limit()] / max(f.cycles(), 1), 3))
            for f in sorted(own, key=lambda f: -f.cycles() * f.instances)
        ]  # fmt: skip
        return dict(
            estimates_read=sum(f.estimated * f.instances for f in own), scheduled_cycles=total,
            without_estimate=sum(f.cycles() * f.instances for f in self.functions if not f.estimated),
            hbm_bytes=self.copied_bytes + sum(f.hbm_bytes * f.instances for f in own),
            unknown_branches=sum(f.unknown_branches for f in self.functions),
            busy={u: round(s, 3) for u, s in sorted(busy.items(), key=lambda item: -item[1])}, functions=functions,
        )  # fmt: skip


def read_utilization(text):
    """(units, slots of each, operations of each in each bundle)."""
    lines = text.splitlines()
    names = [n.strip() for n in lines[1].split(",")]
    rows = [list(map(int, line.split())) for line in lines[lines.index("== UTILIZATION:") + 1 :] if line.strip()]
    return names, list(map(int, lines[2].split())), rows


def read_profile(text):
    """{instruction: (estimated cycles or None, cycles of a matrix instruction)}."""
    found = {}
    for part in text.split("HLO: ")[1:]:
        head, *lines = part.splitlines()
        if not head.startswith("%"):
            continue
        estimate = re.search(r'"estimated_cycles":"(\d+)"', head)
        found[head[1 : head.index(" ")]] = (int(estimate[1]) if estimate else None, pace(lines))
    return found


def pace(lines):
    """Cycles that one instruction keeps its matrix unit busy, a mean over kinds: the most that its bundles could hold says how long each kind takes."""
    counts, shares, bundles = 0, 0.0, 0
    for line in lines:
        match = re.match(r" - (MXU_\d+ matmul\w*|VECTOR_EUP): \((\d+)/(\d+)\)", line)
        if match and match[1] == "VECTOR_EUP":  # one slot a bundle
            bundles = int(match[3])
        elif match and int(match[3]):
            counts += int(match[2])
            shares += int(match[2]) / int(match[3])
    return shares * bundles / counts if counts else 0


def copied_bytes(text):
    """What asynchronous copies bring from HBM or take there."""
    total = 0
    for line in re.findall(r"^HLO: %(?:copy|slice)[a-z.-]*start.*", text, re.M):
        shape = re.search(r"(\w+\[[\d,]*\])\{[^}]*S\(1\)\}", line)  # the end in the core's memory
        if shape and "cross_program_prefetch_index" not in line:
            total += bytes_of(shape[1])
    return total


def read_instances(text):
    """{function: how many instructions run it}."""
    found = {}
    for part in text.split("key:")[1:]:
        lines = part.splitlines()
        found[lines[0].strip()] = max(1, sum(1 for line in lines if line.startswith("  ")))
    return found


def busy_cycles(utilization, bundles, counts, cycles_of_product):
    """{unit: cycles that it needs at least}. The dump's own column for products counts overlapping ones once: they are counted here."""
    names, slots, rows = utilization
    busy = {}
    for k, name in enumerate(names):
        if name == "MATMUL":
            busy[UNITS[name]] = sum(c * b.products for c, b in zip(counts, bundles)) * cycles_of_product / slots[k]
        elif name in UNITS:
            busy[UNITS[name]] = sum(c * row[k] for c, row in zip(counts, rows)) / slots[k]
    return busy


def function_name(path):
    return re.match(r"\d+-(.+)-\d+-final_", path.name)[1]


def by_function(folder, ending):
    """{(stamp, function): path}, without those of the whole program."""
    found = {}
    for path in folder.glob("*" + ending):
        if is_read(path.name) and "-TLP-" not in path.name and not re.match(r"\d+-<", path.name):
            found[int(path.name.split("-")[0]), function_name(path)] = path
    return found


def read_program(functions, utilizations, profile_text, instances):
    texts = {key: path.read_text() for key, path in functions.items()}
    parsed = {key: parse_function(text) for key, text in texts.items()}
    profile = read_profile(profile_text)
    delay = delay_slots(parsed.values())
    made = []
    for (stamp, name), bundles in sorted(parsed.items()):
        estimate, cycles_of_product = profile.get(name, (None, 0))
        counts, unknown = issued(bundles, delay)
        utilization = read_utilization(utilizations[stamp, name].read_text())
        if len(utilization[2]) != len(bundles):
            raise ValueError(f"{name}: {len(bundles)} bundles, and the use of units in {len(utilization[2])}")
        busy = busy_cycles(utilization, bundles, counts, cycles_of_product)
        hbm = sum(map(bytes_of, re.findall(r"inlined_call_operand\.hbm \[shape: ([^ ]*\])", texts[stamp, name])))
        made.append(Function(name, instances.get(name, 1), estimate, sum(counts), unknown, busy, hbm))
    return Program(made, copied_bytes(profile_text))


def read_dump(folder):
    """The programs of a dump, in the order in which they were compiled, one after another."""
    profiles = sorted(folder.glob("*TLP-*-hlo-static-bundle-profile.txt"), key=lambda p: int(p.name.split("-")[0]))
    stamps = [int(p.name.split("-")[0]) for p in profiles] + [1 << 63]
    functions, utilizations = by_function(folder, READ[0]), by_function(folder, READ[1])
    for i, path in enumerate(profiles):
        mine = {key: p for key, p in functions.items() if stamps[i] <= key[0] < stamps[i + 1]}
        (deduplication,) = folder.glob(f"{stamps[i]}-TLP-*-deduplication-map.txt")
        yield read_program(mine, utilizations, path.read_text(), read_instances(deduplication.read_text()))
