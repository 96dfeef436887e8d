/* Tests heddle__prove on plans made by hand: each fault once, and the good plan that is nearest to it.
 * tests/oracle compares it with an independent program on thousands of random ones. */
#include "cases.h"

#include "core/alloc.h"
#include "executor/prove.h"

enum { HOST, DEV_A, DEV_B, DRIVER_2, N_STREAMS }; /* streams: the host's, two of a device, another of the host's */
enum { MEMORY, PINNED, OTHER, N_ALLOCS };         /* allocations: 1,024 bytes each; pinned is not coherent */

#define N_VALUES 8
#define NONE HEDDLE__NO_VALUE
#define R(value, alloc, offset, bytes) \
  { alloc, value, offset, bytes, HEDDLE__READ, 0 }
#define W(value, alloc, offset, bytes) \
  { alloc, value, offset, bytes, HEDDLE__WRITE, 0 }
#define RELEASE(alloc, offset, bytes) \
  { alloc, NONE, offset, bytes, HEDDLE__RELEASE, 0 }
#define ACQUIRE(alloc, offset, bytes) \
  { alloc, NONE, offset, bytes, HEDDLE__ACQUIRE, 0 }

#define MOST 4

typedef struct written_step {
  uint32_t stream;
  heddle__proof_access accesses[MOST]; /* until one without bytes */
  uint32_t waits[MOST];                /* numbers of steps plus 1, until 0 */
} written_step;

#define ON(stream, ...) \
  { \
    stream, {__VA_ARGS__}, { \
      0 \
    } \
  }
#define WAITING(stream, step, ...) \
  { \
    stream, {__VA_ARGS__}, { \
      (step) + 1 \
    } \
  }

static heddle_error err;
static uint32_t faulty;

static heddle_status prove_runs(const written_step *written, uint32_t n, const heddle__proof_initial *initial,
                                uint32_t n_initial, uint32_t in_flight) {
  static const bool hosts[N_STREAMS] = {true, false, false, true};
  static const heddle__proof_alloc allocs[N_ALLOCS] = {{1024, true, 1}, {1024, false, 1}, {1024, true, 1}};
  heddle__proof_step steps[16] = {{0}};
  uint32_t waits[16][MOST];
  assert_true(n <= 16);
  for (uint32_t i = 0; i < n; i++) {
    steps[i].stream = written[i].stream;
    steps[i].accesses = written[i].accesses;
    steps[i].waits = waits[i];
    while (steps[i].n_accesses < MOST && written[i].accesses[steps[i].n_accesses].bytes > 0) steps[i].n_accesses++;
    for (; steps[i].n_waits < MOST && written[i].waits[steps[i].n_waits] > 0; steps[i].n_waits++)
      waits[i][steps[i].n_waits] = written[i].waits[steps[i].n_waits] - 1;
  }
  const heddle__proof proof = {.n_streams = N_STREAMS,
                               .n_allocs = N_ALLOCS,
                               .n_values = N_VALUES,
                               .n_initial = n_initial,
                               .n_steps = n,
                               .in_flight = in_flight,
                               .stream_is_host = hosts,
                               .allocs = allocs,
                               .initial = initial,
                               .steps = steps};
  memset(&err, 0, sizeof err);
  faulty = 99;
  return heddle__prove(&proof, &faulty, &err);
}

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])

/* What lies in memory from the start: value 7 in OTHER at 0, 64 bytes. */
static const heddle__proof_initial constant[] = {{OTHER, 7, 0, 64, 0}};

#define STATUS_OF(in_flight, ...) \
  prove_runs((const written_step[]){__VA_ARGS__}, COUNT(((const written_step[]){__VA_ARGS__})), constant, 1, in_flight)
#define GOOD_RUNS(in_flight, ...) \
  do { \
    if (STATUS_OF(in_flight, __VA_ARGS__) != HEDDLE_OK) fail_msg("refused: %s", err.text); \
    assert_int_equal(faulty, 99); \
  } while (0)
#define FAULT_RUNS(in_flight, step, words, ...) \
  do { \
    assert_int_equal(STATUS_OF(in_flight, __VA_ARGS__), HEDDLE_EPLAN); \
    if (strstr(err.text, words) == NULL) fail_msg("'%s' is not in: %s", words, err.text); \
    assert_int_equal(err.status, HEDDLE_EPLAN); \
    assert_int_equal(faulty, step); \
  } while (0)
#define GOOD(...) GOOD_RUNS(1, __VA_ARGS__)
#define FAULT(step, words, ...) FAULT_RUNS(1, step, words, __VA_ARGS__)

/* ---- Order ---- */

static void conflicts_need_an_order(void **state) {
  (void)state;
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), WAITING(DEV_B, 0, R(0, MEMORY, 0, 64)));
  FAULT(1, "nothing orders it after step 0 (run 0, stream 1), which writes", ON(DEV_A, W(0, MEMORY, 0, 64)),
        ON(DEV_B, R(0, MEMORY, 0, 64)));
  FAULT(1, "writes bytes 32 to 64", ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_B, W(1, MEMORY, 32, 64)));
  FAULT(2, "which reads them", ON(DEV_A, W(0, MEMORY, 0, 64)), WAITING(DEV_B, 0, R(0, MEMORY, 0, 64)),
        ON(DEV_A, W(1, MEMORY, 0, 64)));
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), WAITING(DEV_B, 0, R(0, MEMORY, 0, 64)), WAITING(DEV_A, 1, W(1, MEMORY, 0, 64)));
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_B, W(1, MEMORY, 64, 64)));
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_B, W(1, OTHER, 64, 64)));
}

static void order_is_transitive(void **state) {
  (void)state;
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), WAITING(HOST, 0, W(1, OTHER, 64, 64)), WAITING(DEV_B, 1, R(0, MEMORY, 0, 64)));
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, W(1, MEMORY, 64, 64)), WAITING(DEV_B, 1, W(2, MEMORY, 256, 8)),
       ON(DEV_B, R(0, MEMORY, 0, 64)));
  FAULT(2, "nothing orders it after step 1", ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, W(1, MEMORY, 64, 64)),
        WAITING(DEV_B, 0, R(1, MEMORY, 64, 64)));
}

static void every_reader_counts(void **state) {
  (void)state;
  /* the writer waits for one of two readers that are not ordered to each other */
  FAULT(3, "after step 1", ON(HOST, W(0, MEMORY, 0, 64)), WAITING(DEV_A, 0, R(0, MEMORY, 0, 64)),
        WAITING(DEV_B, 0, R(0, MEMORY, 0, 64)), WAITING(HOST, 2, W(1, MEMORY, 0, 64)));
  GOOD(ON(HOST, W(0, MEMORY, 0, 64)), WAITING(DEV_A, 0, R(0, MEMORY, 0, 64)), WAITING(DEV_B, 1, R(0, MEMORY, 0, 64)),
       WAITING(HOST, 2, W(1, MEMORY, 0, 64)));
  /* a reader of a part */
  FAULT(3, "writes bytes 16 to 32", ON(HOST, W(0, MEMORY, 0, 64)), WAITING(DEV_A, 0, R(0, MEMORY, 0, 32)),
        ON(HOST, W(1, MEMORY, 32, 32)), ON(HOST, W(2, MEMORY, 16, 32)));
}

static void waits_lead_backwards(void **state) {
  (void)state;
  FAULT(0, "waits for step 1, which is not earlier", WAITING(DEV_A, 1, W(0, MEMORY, 0, 64)),
        ON(DEV_B, W(1, MEMORY, 64, 64)));
  FAULT(0, "waits for step 0", WAITING(DEV_A, 0, W(0, MEMORY, 0, 64)));
  FAULT(0, "waits for step 1000", WAITING(DEV_A, 1000, W(0, MEMORY, 0, 64)));
}

static void runs_in_flight_are_ordered(void **state) {
  (void)state;
  /* run 1 writes on DEV_A while DEV_B of run 0 still reads */
#define TWO_STREAMS ON(DEV_A, W(0, MEMORY, 0, 64)), WAITING(DEV_B, 0, R(0, MEMORY, 0, 64))
  GOOD_RUNS(1, TWO_STREAMS);
  FAULT_RUNS(2, 0,
             "step 0 (run 1, stream 1) writes bytes 0 to 64 of allocation 0, and nothing orders it after step 1 "
             "(run 0, stream 2)",
             TWO_STREAMS);
  GOOD_RUNS(2, TWO_STREAMS, WAITING(DEV_A, 1, W(1, MEMORY, 64, 8)));
  GOOD_RUNS(3, TWO_STREAMS, WAITING(DEV_A, 1, W(1, MEMORY, 64, 8)));
}

enum { OUTPUT, CONSTANT }; /* allocations of the next two */

/* Run 1 has memory and streams of its own, but for what has one set. */
static void runs_may_have_sets_of_their_own(void **state) {
  (void)state;
  const heddle__proof_access to_output = W(0, OUTPUT, 0, 64), from_output = R(0, OUTPUT, 0, 64),
                             from_constant = R(1, CONSTANT, 0, 64);
  const heddle__proof_access made[] = {from_constant, to_output};
  const uint32_t first = 0;
  const heddle__proof_step steps[] = {{.stream = 1, .n_accesses = 2, .accesses = made},
                                      {.n_accesses = 1, .n_waits = 1, .accesses = &from_output, .waits = &first}};
  const heddle__proof_initial constant_1 = {CONSTANT, 1, 0, 64, 0};
  const bool hosts[] = {true, false};
  for (uint32_t in_flight = 1; in_flight <= 5; in_flight++)
    for (uint32_t sets = 0; sets <= 6; sets++)
      for (uint32_t streams = 0; streams <= 6; streams++) {
        const heddle__proof_alloc allocs[] = {{64, true, sets}, {64, true, 1}};
        const heddle__proof proof = {2, 2, 2, 1, 2, in_flight, streams, hosts, allocs, &constant_1, steps};
        memset(&err, 0, sizeof err);
        heddle_status s = heddle__prove(&proof, &faulty, &err);
        /* Two runs at the same time may not have one set of the output: run r writes while run r - sets still reads. */
        uint32_t own = sets > 1 ? sets : 1;
        assert_int_equal(s, own >= in_flight ? HEDDLE_OK : HEDDLE_EPLAN);
        if (s == HEDDLE_OK) continue;
        char words[128];
        snprintf(words, sizeof words,
                 "step 0 (run %u, stream 1) writes bytes 0 to 64 of allocation 0, and nothing "
                 "orders it after",
                 own);
        assert_non_null(strstr(err.text, words));
        assert_int_equal(faulty, 0);
      }
}

static void initial_content_is_in_every_set(void **state) {
  (void)state;
  const heddle__proof_access reads = R(0, OUTPUT, 16, 16), late = R(0, OUTPUT, 32, 16);
  const heddle__proof_initial input = {OUTPUT, 0, 16, 16, 0};
  const heddle__proof_alloc allocs[] = {{64, false, 3}};
  const bool hosts[] = {true};
  const heddle__proof_step good = {.n_accesses = 1, .accesses = &reads}, bad = {.n_accesses = 1, .accesses = &late};
  const heddle__proof proof = {1, 1, 1, 1, 1, 3, 3, hosts, allocs, &input, &good};
  heddle__proof other = proof;
  other.steps = &bad;
  assert_int_equal(heddle__prove(&proof, NULL, &err), HEDDLE_OK);
  assert_int_equal(heddle__prove(&other, NULL, &err), HEDDLE_EPLAN);
  assert_non_null(strstr(err.text, "hold nothing yet"));
}

/* ---- Content ---- */

static void a_read_sees_its_value(void **state) {
  (void)state;
  FAULT(0, "hold nothing yet", ON(DEV_A, R(0, MEMORY, 0, 64)));
  FAULT(1, "bytes 32 to 64 of allocation 0 hold nothing yet", ON(DEV_A, W(0, MEMORY, 0, 32)),
        ON(DEV_A, R(0, MEMORY, 0, 64)));
  FAULT(1, "hold value 0 of run 0 since step 0", ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, R(1, MEMORY, 0, 64)));
  FAULT(1, "first byte at 0", ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, R(0, MEMORY, 32, 32)));
  FAULT(2, "bytes 60 to 64", ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, W(1, MEMORY, 60, 8)),
        ON(DEV_A, R(0, MEMORY, 0, 64)));
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, W(1, MEMORY, 60, 8)), ON(DEV_A, R(0, MEMORY, 0, 60)),
       ON(DEV_A, R(1, MEMORY, 60, 8)));
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, W(1, MEMORY, 0, 64)), ON(DEV_A, W(0, MEMORY, 0, 64)),
       ON(DEV_A, R(0, MEMORY, 0, 64)));
}

static void initial_content_is_for_every_run(void **state) {
  (void)state;
  GOOD(ON(DEV_A, R(7, OTHER, 0, 64)));
  GOOD_RUNS(3, ON(DEV_A, R(7, OTHER, 0, 64)), ON(DEV_B, R(7, OTHER, 0, 64)));
  FAULT(0, "step 0 (run 1, stream 1) reads value 7", ON(DEV_A, R(7, OTHER, 0, 64)), ON(DEV_A, W(0, OTHER, 60, 64)));
  FAULT(0, "value 7 of run 0", ON(DEV_A, R(7, OTHER, 0, 64)), ON(DEV_A, W(7, OTHER, 0, 64)));
  FAULT(0, "initial value 7 from byte 0", ON(DEV_A, R(7, OTHER, 32, 32)));
  FAULT(0, "initial value 7", ON(DEV_A, R(6, OTHER, 0, 64)));
}

static void a_run_does_not_see_the_one_before(void **state) {
  (void)state;
  const heddle__proof_initial start[] = {{MEMORY, 0, 0, 64, 0}};
  const written_step steps[] = {ON(DEV_A, R(0, MEMORY, 0, 64)), ON(DEV_A, W(0, MEMORY, 0, 64))};
  assert_int_equal(prove_runs(steps, 2, start, 1, 1), HEDDLE_EPLAN);
  assert_non_null(strstr(err.text, "hold value 0 of run 0 since step 1 of run 0"));
  assert_int_equal(faulty, 0);
}

/* ---- Steps that read and write ---- */

static void in_place_reads_first(void **state) {
  (void)state;
  GOOD(ON(DEV_A, W(0, MEMORY, 0, 64)), ON(DEV_A, W(1, MEMORY, 0, 64), R(0, MEMORY, 0, 64)),
       ON(DEV_A, R(1, MEMORY, 0, 64)));
  FAULT(1, "step 1 writes bytes 32 to 64 of allocation 0 twice", ON(DEV_A, W(0, MEMORY, 0, 64)),
        ON(DEV_A, W(1, MEMORY, 0, 64), W(2, MEMORY, 32, 64)));
}

static void a_workspace_holds_nothing(void **state) {
  (void)state;
  GOOD(ON(DEV_A, W(NONE, MEMORY, 0, 64), R(NONE, MEMORY, 0, 64), R(7, OTHER, 0, 64)));
  FAULT(1, "hold a workspace since step 0", ON(DEV_A, W(NONE, MEMORY, 0, 64)), ON(DEV_A, R(0, MEMORY, 0, 64)));
  FAULT(1, "nothing orders it", ON(DEV_A, W(NONE, MEMORY, 0, 64)), ON(DEV_B, W(NONE, MEMORY, 0, 64)));
  FAULT(1, "workspace in bytes 32 to 64", ON(DEV_A, W(0, MEMORY, 0, 64)),
        ON(DEV_A, R(0, MEMORY, 0, 64), W(NONE, MEMORY, 32, 64), W(1, MEMORY, 96, 64)));
  FAULT(0, "twice", ON(DEV_A, W(NONE, MEMORY, 0, 64), W(1, MEMORY, 0, 64)));
}

/* ---- Memory that is not coherent ---- */

static void a_device_needs_a_release(void **state) {
  (void)state;
#define HOST_WRITES ON(HOST, W(0, PINNED, 0, 64))
  FAULT(1, "it needs a release between", HOST_WRITES, WAITING(DEV_A, 0, R(0, PINNED, 0, 64)));
  GOOD(HOST_WRITES, ON(HOST, RELEASE(PINNED, 0, 64)), WAITING(DEV_A, 1, R(0, PINNED, 0, 64)));
  GOOD(HOST_WRITES, ON(HOST, RELEASE(PINNED, 0, 1024)), WAITING(DEV_A, 1, R(0, PINNED, 0, 64)));
  GOOD(HOST_WRITES, WAITING(DRIVER_2, 0, RELEASE(PINNED, 0, 64)), WAITING(DEV_A, 1, R(0, PINNED, 0, 64)));
  GOOD(HOST_WRITES, ON(HOST, R(0, PINNED, 0, 64)), WAITING(DRIVER_2, 0, R(0, PINNED, 0, 64)));
  GOOD(ON(HOST, W(0, MEMORY, 0, 64)), WAITING(DEV_A, 0, R(0, MEMORY, 0, 64)));
  /* one of two releases that are not ordered to each other is enough, whichever it is */
  GOOD(HOST_WRITES, ON(HOST, RELEASE(PINNED, 0, 64)), WAITING(DRIVER_2, 0, RELEASE(PINNED, 0, 64)),
       WAITING(DEV_A, 2, R(0, PINNED, 0, 64)), WAITING(DEV_B, 1, R(0, PINNED, 0, 64)));
  /* too small, of the wrong kind, not before the reader, before the writer, in the writer's own step */
  FAULT(2, "bytes 63 to 64", HOST_WRITES, ON(HOST, RELEASE(PINNED, 0, 63)), WAITING(DEV_A, 1, R(0, PINNED, 0, 64)));
  FAULT(2, "a release", HOST_WRITES, ON(HOST, ACQUIRE(PINNED, 0, 64)), WAITING(DEV_A, 1, R(0, PINNED, 0, 64)));
  FAULT(2, "a release", HOST_WRITES, ON(HOST, RELEASE(PINNED, 0, 64)), WAITING(DEV_A, 0, R(0, PINNED, 0, 64)));
  FAULT(2, "a release", ON(HOST, RELEASE(PINNED, 0, 64)), HOST_WRITES, WAITING(DEV_A, 1, R(0, PINNED, 0, 64)));
  FAULT(1, "a release", ON(HOST, W(0, PINNED, 0, 64), RELEASE(PINNED, 0, 64)), WAITING(DEV_A, 0, R(0, PINNED, 0, 64)));
  /* the host's cache may still be written over what a device writes */
  FAULT(1, "a release", HOST_WRITES, WAITING(DEV_A, 0, W(1, PINNED, 0, 64)));
}

static void the_host_needs_an_acquire(void **state) {
  (void)state;
#define DEVICE_WRITES ON(DEV_A, W(0, PINNED, 0, 64))
  FAULT(1, "it needs an acquire between", DEVICE_WRITES, WAITING(HOST, 0, R(0, PINNED, 0, 64)));
  GOOD(DEVICE_WRITES, WAITING(HOST, 0, ACQUIRE(PINNED, 0, 64)), ON(HOST, R(0, PINNED, 0, 64)));
  GOOD(DEVICE_WRITES, WAITING(DEV_B, 0, R(0, PINNED, 0, 64)));
  FAULT(2, "an acquire", DEVICE_WRITES, WAITING(HOST, 0, ACQUIRE(PINNED, 0, 64)),
        WAITING(DRIVER_2, 0, R(0, PINNED, 0, 64)));
  FAULT(1, "an acquire", DEVICE_WRITES, WAITING(HOST, 0, ACQUIRE(PINNED, 0, 64), R(0, PINNED, 0, 64)));
  FAULT(3, "an acquire", DEVICE_WRITES, WAITING(HOST, 0, ACQUIRE(PINNED, 0, 64)),
        WAITING(DEV_A, 1, W(1, PINNED, 0, 64)), WAITING(HOST, 2, R(1, PINNED, 0, 64)));
}

static void releases_race_like_reads(void **state) {
  (void)state;
  FAULT(2, "which reads them", HOST_WRITES, ON(HOST, RELEASE(PINNED, 0, 64)),
        WAITING(DRIVER_2, 0, W(1, PINNED, 0, 64)));
  FAULT(1, "releases bytes 0 to 64", HOST_WRITES, ON(DRIVER_2, RELEASE(PINNED, 0, 64)));
  FAULT(0, "only the host does", ON(DEV_A, RELEASE(PINNED, 0, 64)));
}

/* ---- What is no plan ---- */

static void ranges_lie_in_their_allocation(void **state) {
  (void)state;
  GOOD(ON(DEV_A, W(0, MEMORY, 960, 64)));
  FAULT(0, "step 0 takes 65 bytes at 960 of allocation 0, which has 1024", ON(DEV_A, W(0, MEMORY, 960, 65)));
  FAULT(0, "which has 1024", ON(DEV_A, W(0, MEMORY, 2, UINT64_MAX)));
  FAULT(1, "which has 1024", ON(DEV_B, W(1, MEMORY, 0, 8)), ON(DEV_A, W(0, MEMORY, 1025, 1)));
  FAULT(0, "allocation 3 of 3", ON(DEV_A, W(0, N_ALLOCS, 0, 64)));
  FAULT(0, "value 8 of 8", ON(DEV_A, W(N_VALUES, MEMORY, 0, 64)));
  FAULT(0, "stream 4 of 4", ON(N_STREAMS, W(0, MEMORY, 0, 64)));
  FAULT(0, "unknown mode", ON(DEV_A, {MEMORY, 0, 0, 64, (heddle__access_mode)9, 0}));
  FAULT_RUNS(0, UINT32_MAX, "at least 1 run", ON(DEV_A, W(0, MEMORY, 0, 64)));
  FAULT_RUNS(UINT32_MAX, UINT32_MAX, "too many", ON(DEV_A, W(0, MEMORY, 0, 64)));
}

static void initial_ranges_are_checked(void **state) {
  (void)state;
  const written_step step[] = {ON(DEV_A, W(0, MEMORY, 0, 64))};
  const heddle__proof_initial outside[] = {{MEMORY, 0, 1000, 64, 0}}, unknown[] = {{MEMORY, N_VALUES, 0, 64, 0}},
                              twice[] = {{OTHER, 3, 0, 64, 0}, {OTHER, 3, 0, 64, 0}};
  assert_int_equal(prove_runs(step, 1, outside, 1, 1), HEDDLE_EPLAN);
  assert_non_null(strstr(err.text, "initial content 0 takes 64 bytes at 1000"));
  assert_int_equal(faulty, UINT32_MAX);
  assert_int_equal(prove_runs(step, 1, unknown, 1, 1), HEDDLE_EPLAN);
  const written_step reads[] = {ON(DEV_A, R(3, OTHER, 0, 64))};
  assert_int_equal(prove_runs(reads, 1, twice, 2, 1), HEDDLE_OK);
}

/* ---- State values that are updated in place ---- */

#define KEEPS(kept, value, alloc, offset, bytes) \
  { alloc, value, offset, bytes, HEDDLE__WRITE, 1 + (kept) }

static void state(const char *fault, const written_step *steps, uint32_t n, uint32_t in_flight) {
  static const heddle__proof_initial past[] = {{MEMORY, 5, 0, 64, 1 + 6}};
  const heddle_status s = prove_runs(steps, n, past, 1, in_flight);
  if (s != (fault != NULL ? HEDDLE_EPLAN : HEDDLE_OK) || (fault != NULL && strstr(err.text, fault) == NULL))
    fail_msg("%s: %s", fault != NULL ? fault : "good", s == HEDDLE_OK ? "accepted" : err.text);
}

#define STATE(fault, ...) \
  do { \
    const written_step steps_[] = {__VA_ARGS__}; \
    state(fault, steps_, sizeof steps_ / sizeof steps_[0], 1); \
  } while (0)

static void a_state_value_is_kept_until_the_run_has_ended(void **unused) {
  (void)unused;
  const heddle__proof_access before = R(5, MEMORY, 0, 64), after = R(6, MEMORY, 0, 96),
                             update = KEEPS(5, 6, MEMORY, 0, 96);
  STATE(NULL, ON(DEV_A, before), ON(DEV_A, before, update), ON(DEV_A, after));
  STATE(NULL, ON(DEV_A, update), ON(DEV_A, after), ON(DEV_A, R(6, MEMORY, 0, 96)));
  STATE("hold the state value 5, and does not keep it", ON(DEV_A, before, W(6, MEMORY, 0, 96)), ON(DEV_A, after));
  STATE("does not keep it", ON(DEV_A, W(0, MEMORY, 32, 16)),
        ON(DEV_A, update)); /* bytes that are borrowed until then */
  STATE("does not keep it", ON(DEV_A, KEEPS(4, 6, MEMORY, 0, 96)));
  STATE("does not keep it", ON(DEV_A, KEEPS(5, 6, MEMORY, 16, 96))); /* it would begin elsewhere */
  STATE("reads value 5 from byte 0", ON(DEV_A, update), ON(DEV_A, before));
  STATE("nothing orders it after step 0", ON(DEV_A, before), ON(DEV_B, update));
  STATE("reads value 6", ON(DEV_A, after), ON(DEV_A, update)); /* it is not yet made in this run */
}

static void a_state_value_is_made_in_each_run(void **unused) {
  (void)unused;
  const heddle__proof_access update = KEEPS(5, 6, MEMORY, 0, 96);
  STATE("do not hold value 6", ON(DEV_A, R(5, MEMORY, 0, 64)));
  STATE("do not hold value 6", ON(DEV_A, KEEPS(5, 6, MEMORY, 0, 32)));             /* not all of it */
  STATE("do not hold value 6", ON(DEV_A, update), ON(DEV_A, W(0, MEMORY, 0, 16))); /* overwritten since */
  STATE("do not hold value 6", ON(DEV_A, KEEPS(5, 4, MEMORY, 0, 96)));
  STATE(NULL, ON(DEV_A, update), ON(DEV_A, W(0, MEMORY, 96, 16)));
  const written_step steps[] = {ON(DEV_A, KEEPS(5, 6, MEMORY, 0, 96))};
  state("2 runs are in flight", steps, 1, 2);
  const heddle__proof_initial unknown = {MEMORY, 5, 0, 64, 1 + N_VALUES};
  assert_int_equal(prove_runs(steps, 1, &unknown, 1, 1), HEDDLE_EPLAN);
}

static void nothing_is_a_plan(void **state) {
  (void)state;
  const heddle__proof empty = {.in_flight = 1};
  assert_int_equal(heddle__prove(&empty, NULL, NULL), HEDDLE_OK);
  const heddle__proof none_in_flight = {0};
  assert_int_equal(heddle__prove(&none_in_flight, NULL, NULL), HEDDLE_EPLAN);
  /* a value without bytes needs nothing */
  const bool host = true;
  const heddle__proof_alloc alloc = {0, true, 1};
  const heddle__proof_access access = {0, 0, 0, 0, HEDDLE__READ, 0};
  const heddle__proof_step step = {.n_accesses = 1, .accesses = &access};
  const heddle__proof proof = {1, 1, 1, 0, 1, 1, 1, &host, &alloc, NULL, &step};
  assert_int_equal(heddle__prove(&proof, NULL, NULL), HEDDLE_OK);
}

static void memory_may_be_out(void **state) {
  (void)state;
  size_t live = heddle__alloc_live();
  uint64_t n = 1;
  heddle_status s = HEDDLE_ENOMEM;
  for (; s == HEDDLE_ENOMEM && n < 100; n++) {
    heddle__alloc_fail_at(n);
    s = STATUS_OF(2, HOST_WRITES, ON(HOST, RELEASE(PINNED, 0, 64)), WAITING(DEV_A, 1, R(0, PINNED, 0, 64)),
                  WAITING(HOST, 2, R(0, PINNED, 0, 64)));
    heddle__alloc_fail_at(0);
    assert_int_equal(heddle__alloc_live(), live);
    assert_int_equal(faulty, 99);
  }
  assert_int_equal(s, HEDDLE_OK);
  assert_true(n > 10);
}

/* ---- Many ranges ---- */

enum { GRAINS = 1 << 16, MANY = 4000 };

/* One stream writes MANY ranges of an allocation at random, then reads those that are whole; a plain array of the
 * last writers says which. The last read can be of one that is not. */
static heddle_status scattered(bool with_fault, uint32_t *expected) {
  uint32_t *last = calloc(GRAINS, sizeof *last), n = 0, seed = 1;
  heddle__proof_access *accesses = calloc((size_t)MANY * 2, sizeof *accesses);
  heddle__proof_step *steps = calloc((size_t)MANY * 2, sizeof *steps);
  assert_true(last != NULL && accesses != NULL && steps != NULL);
  accesses[n++] = (heddle__proof_access){0, 0, 0, GRAINS, HEDDLE__WRITE, 0};
  for (uint32_t value = 1; value < MANY; value++) {
    seed = seed * 1664525u + 1013904223u;
    uint32_t bytes = 1 + (seed >> 8) % (value % 50 == 0 ? 6000 : 40), offset = (seed >> 12) % (GRAINS - bytes);
    accesses[n++] = (heddle__proof_access){0, value, offset, bytes, HEDDLE__WRITE, 0};
    for (uint32_t i = 0; i < bytes; i++) last[offset + i] = value;
  }
  uint32_t broken = 0;
  for (uint32_t value = 0; value < MANY; value++) {
    uint64_t whole = 0;
    while (whole < accesses[value].bytes && last[accesses[value].offset + whole] == value) whole++;
    if (whole < accesses[value].bytes) broken = value;
    if (whole == 0) continue;
    accesses[n] = accesses[value];
    accesses[n].bytes = whole;
    accesses[n++].mode = HEDDLE__READ;
  }
  *expected = n;
  if (with_fault) {
    accesses[n] = accesses[broken];
    accesses[n++].mode = HEDDLE__READ;
  }
  for (uint32_t i = 0; i < n; i++) steps[i] = (heddle__proof_step){.n_accesses = 1, .accesses = &accesses[i]};
  const bool host = true;
  const heddle__proof_alloc alloc = {GRAINS, true, 1};
  const heddle__proof proof = {1, 1, MANY, 0, n, 1, 1, &host, &alloc, NULL, steps};
  faulty = 99;
  heddle_status s = heddle__prove(&proof, &faulty, &err);
  free(last);
  free(accesses);
  free(steps);
  return s;
}

static void many_ranges_are_told_apart(void **state) {
  (void)state;
  uint32_t expected;
  if (scattered(false, &expected) != HEDDLE_OK) fail_msg("refused: %s", err.text);
  assert_true(expected > MANY + MANY / 10);
  assert_int_equal(scattered(true, &expected), HEDDLE_EPLAN);
  assert_int_equal(faulty, expected);
}

CASES(CASE(conflicts_need_an_order), CASE(order_is_transitive), CASE(every_reader_counts), CASE(waits_lead_backwards),
      CASE(runs_in_flight_are_ordered), CASE(runs_may_have_sets_of_their_own), CASE(initial_content_is_in_every_set),
      CASE(a_read_sees_its_value), CASE(initial_content_is_for_every_run), CASE(a_run_does_not_see_the_one_before),
      CASE(in_place_reads_first), CASE(a_workspace_holds_nothing), CASE(a_device_needs_a_release),
      CASE(the_host_needs_an_acquire), CASE(releases_race_like_reads), CASE(ranges_lie_in_their_allocation),
      CASE(initial_ranges_are_checked), CASE(a_state_value_is_kept_until_the_run_has_ended),
      CASE(a_state_value_is_made_in_each_run), CASE(nothing_is_a_plan), CASE(memory_may_be_out),
      CASE(many_ranges_are_told_apart))
