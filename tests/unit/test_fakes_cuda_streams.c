/* The double of CUDA's driver, as its programs see it: the order of streams, events, captures and graphs.
 * labels: threads */
#include "fakes_cuda.h"

#ifdef HEDDLE_TEST_FAKE_CUDA

/* Numbers in the order in which host functions ran. */
typedef struct diary {
  int entries[32];
  atomic_int n;
} diary;
typedef struct line {
  diary *to;
  int number;
} line;

static void write_line(void *arg) {
  line *l = arg;
  l->to->entries[atomic_fetch_add(&l->to->n, 1)] = l->number;
}

static void streams_keep_their_order_and_wait_for_events(void **state) {
  (void)state;
  diary d = {{0}, 0};
  line lines[] = {{&d, 0}, {&d, 1}, {&d, 2}};
  fake_gate gate;
  CUevent event;
  setenv("FAKE_GPU_DELAY", "300", 1);
  fake_start(0);
  CUstream a = fake_stream(), b = fake_stream();
  CU(cuEventCreate(&event, 0));
  CU(cuEventQuery(event)); /* never recorded: done */
  fake_gate_put(&gate, a);
  CU(cuLaunchHostFunc(a, write_line, &lines[0]));
  CU(cuEventRecord(event, a));
  CU(cuStreamWaitEvent(b, event, 0));
  CU(cuLaunchHostFunc(b, write_line, &lines[2]));
  assert_int_equal(cuEventQuery(event), CUDA_ERROR_NOT_READY);
  assert_int_equal(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
  atomic_store(&gate.open, true);
  CU(cuEventSynchronize(event));
  CU(cuStreamSynchronize(b));
  CU(cuLaunchHostFunc(a, write_line, &lines[1]));
  CU(cuCtxSynchronize());
  CU(cuStreamQuery(a));
  assert_int_equal(d.n, 3);
  assert_int_equal(d.entries[0], 0);
  assert_int_equal(d.entries[1], 2);
  assert_int_equal(d.entries[2], 1);
  CU(cuEventDestroy(event));
  CU(cuStreamDestroy(a));
  CU(cuStreamDestroy(b));
  fake_end(0);
}

static void the_default_stream_waits_for_blocking_ones(void **state) {
  (void)state;
  diary d = {{0}, 0};
  line lines[] = {{&d, 0}, {&d, 1}, {&d, 2}};
  fake_gate gate;
  CUstream blocking;
  fake_start(0);
  CU(cuStreamCreate(&blocking, 0));
  fake_gate_put(&gate, blocking);
  CU(cuLaunchHostFunc(blocking, write_line, &lines[0]));
  CU(cuLaunchHostFunc(NULL, write_line, &lines[1]));
  CU(cuLaunchHostFunc(blocking, write_line, &lines[2]));
  atomic_store(&gate.open, true);
  CU(cuStreamSynchronize(blocking));
  assert_int_equal(d.n, 3);
  for (int i = 0; i < 3; i++) assert_int_equal(d.entries[i], i);
  CU(cuStreamDestroy(blocking));
  fake_end(0);
}

/* Pageable memory is read when the call returns, pinned memory when its turn comes. */
static void only_pinned_copies_are_asynchronous(void **state) {
  (void)state;
  unsigned pageable = 1, *pinned, got[2];
  CUdeviceptr a;
  fake_gate gate;
  fake_start(0);
  CUstream stream = fake_stream();
  CU(cuMemHostAlloc((void **)&pinned, 4, 0));
  CU(cuMemAlloc(&a, 8));
  *pinned = 1;
  fake_gate_put(&gate, stream);
  CU(cuMemcpyHtoDAsync(a, &pageable, 4, stream));
  CU(cuMemcpyHtoDAsync(a + 4, pinned, 4, stream));
  pageable = 2;
  *pinned = 2;
  atomic_store(&gate.open, true);
  CU(cuMemcpyDtoHAsync(got, a, 8, stream)); /* waits, since got is pageable */
  assert_int_equal(got[0], 1);
  assert_int_equal(got[1], 2);
  CU(cuMemFree(a));
  CU(cuMemFreeHost(pinned));
  CU(cuStreamDestroy(stream));
  fake_end(0);
}

static void memory_of_another_streams_order_is_not_there_yet(void **state) {
  (void)state;
  CUdeviceptr a;
  static fake_gate gate; /* the stream sees it after this case */
  fake_start(0);
  CUstream one = fake_stream(), two = fake_stream();
  fake_gate_put(&gate, one);
  CU(cuMemAllocAsync(&a, 64, one));
  CU(cuMemsetD32Async(a, 0, 16, two));
  assert_int_equal(cuStreamSynchronize(two), CUDA_ERROR_ILLEGAL_ADDRESS);
  assert_int_equal(fake_gpu_misuse(), 1);
  atomic_store(&gate.open, true);
}

static atomic_int inside;
static void call_the_driver(void *arg) {
  CUdeviceptr a;
  (void)arg;
  inside = (int)cuMemAlloc(&a, 8);
}

static void a_host_function_may_not_call_the_driver(void **state) {
  (void)state;
  fake_start(0);
  CUstream stream = fake_stream();
  CU(cuLaunchHostFunc(stream, call_the_driver, NULL));
  CU(cuStreamSynchronize(stream));
  assert_int_equal(inside, CUDA_ERROR_NOT_PERMITTED);
  assert_int_equal(fake_gpu_misuse(), 1);
}

static void events_tell_times(void **state) {
  (void)state;
  CUevent from, to, plain;
  fake_gate gate;
  float ms = -1;
  fake_start(0);
  CUstream stream = fake_stream();
  CU(cuEventCreate(&from, 0));
  CU(cuEventCreate(&to, 0));
  CU(cuEventCreate(&plain, CU_EVENT_DISABLE_TIMING));
  CU(cuEventRecord(from, stream));
  fake_gate_put(&gate, stream);
  CU(cuEventRecord(to, stream));
  CU(cuEventRecord(plain, stream));
  assert_int_equal(cuEventElapsedTime(&ms, from, to), CUDA_ERROR_NOT_READY);
  CU(cuEventSynchronize(from));
  fake_nap(5000);
  atomic_store(&gate.open, true);
  CU(cuStreamSynchronize(stream));
  CU(cuEventElapsedTime(&ms, from, to));
  assert_true(ms >= 4.9f);
  assert_int_equal(fake_gpu_misuse(), 0);
  assert_int_equal(cuEventElapsedTime(&ms, from, plain), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(fake_gpu_misuse(), 1);
}

/* ---------------------------------------------------------------- captures */

typedef struct board {
  CUstream a, b;
  CUevent event, back;
  CUdeviceptr memory;
} board;

static board start(void) {
  board x;
  fake_start(0);
  x.a = fake_stream();
  x.b = fake_stream();
  CU(cuEventCreate(&x.event, CU_EVENT_DISABLE_TIMING));
  CU(cuEventCreate(&x.back, CU_EVENT_DISABLE_TIMING));
  CU(cuMemAlloc(&x.memory, 64));
  return x;
}

static void end(const board *x) {
  CU(cuMemFree(x->memory));
  CU(cuEventDestroy(x->event));
  CU(cuEventDestroy(x->back));
  CU(cuStreamDestroy(x->a));
  CU(cuStreamDestroy(x->b));
  fake_end(0);
}

static void a_capture_forks_and_joins(void **state) {
  (void)state;
  board x = start();
  CUgraph graph;
  CUgraphExec exec;
  CUgraphNodeType type;
  size_t n = 0;
  unsigned got[16];
  CU(cuMemsetD32(x.memory, 0, 16));
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CU(cuMemsetD32Async(x.memory, 1, 4, x.a));
  CU(cuEventRecord(x.event, x.a));
  CU(cuStreamWaitEvent(x.b, x.event, 0));
  CU(cuMemsetD32Async(x.memory + 16, 2, 4, x.b));
  CU(cuMemsetD32Async(x.memory + 32, 3, 4, x.a));
  CU(cuEventRecord(x.back, x.b));
  CU(cuStreamWaitEvent(x.a, x.back, 0));
  CU(cuMemcpyDtoDAsync(x.memory + 48, x.memory + 16, 16, x.a));
  CU(cuStreamEndCapture(x.a, &graph));
  CU(cuGraphGetNodes(graph, NULL, &n));
  assert_int_equal(n, 4);
  CUgraphNode nodes[4];
  CU(cuGraphGetNodes(graph, nodes, &n));
  CU(cuGraphNodeGetType(nodes[3], &type));
  assert_int_equal(type, CU_GRAPH_NODE_TYPE_MEMCPY);
  CU(cuMemcpyDtoH(got, x.memory, sizeof got));
  assert_int_equal(got[0], 0); /* nothing ran yet */
  CU(cuGraphInstantiate(&exec, graph, 0));
  CU(cuGraphDestroy(graph));
  CU(cuGraphLaunch(exec, x.b));
  CU(cuStreamSynchronize(x.b));
  CU(cuMemcpyDtoH(got, x.memory, sizeof got));
  for (int i = 0; i < 16; i++) assert_int_equal(got[i], i < 4 ? 1 : i < 8 ? 2 : i < 12 ? 3 : 2);
  CU(cuGraphExecDestroy(exec));
  end(&x);
}

static void what_a_capture_cannot_hold_breaks_it(void **state) {
  (void)state;
  board x = start();
  CUgraph graph;
  CUdeviceptr a;
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  assert_int_equal(cuStreamSynchronize(x.a), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_int_equal(cuMemsetD32Async(x.memory, 1, 4, x.a), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  assert_int_equal(cuStreamEndCapture(x.a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  assert_null(graph);
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  assert_int_equal(cuMemAlloc(&a, 8), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  assert_int_equal(cuStreamEndCapture(x.a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuMemAlloc(&a, 8));
  CU(cuStreamEndCapture(x.a, &graph));
  CU(cuGraphDestroy(graph));
  assert_int_equal(fake_gpu_misuse(), 2);
}

static void captures_are_kept_apart(void **state) {
  (void)state;
  board x = start();
  CUgraph graph;
  CU(cuEventRecord(x.back, x.b));
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  assert_int_equal(cuStreamWaitEvent(x.a, x.back, 0), CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
  assert_int_equal(cuStreamEndCapture(x.a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuMemsetD32Async(x.memory, 1, 4, x.a));
  CU(cuEventRecord(x.event, x.a));
  assert_int_equal(cuEventQuery(x.event), CUDA_ERROR_CAPTURED_EVENT);
  assert_int_equal(cuStreamEndCapture(x.a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuStreamBeginCapture(x.b, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuEventRecord(x.event, x.a));
  assert_int_equal(cuStreamWaitEvent(x.b, x.event, 0), CUDA_ERROR_STREAM_CAPTURE_MERGE);
  assert_int_equal(cuStreamEndCapture(x.a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
  assert_int_equal(cuStreamEndCapture(x.b, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuEventRecord(x.event, x.a));
  CU(cuStreamWaitEvent(x.b, x.event, 0));
  CU(cuMemsetD32Async(x.memory, 1, 4, x.b));
  assert_int_equal(cuStreamEndCapture(x.b, &graph), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
  assert_int_equal(cuStreamEndCapture(x.a, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);

  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_RELAXED));
  CU(cuEventRecord(x.event, x.a));
  CU(cuStreamWaitEvent(x.b, x.event, 0));
  CU(cuMemsetD32Async(x.memory, 1, 4, x.b));
  assert_int_equal(cuStreamEndCapture(x.a, &graph), CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
  CU(cuMemsetD32Async(x.memory, 1, 4, x.b)); /* b is free again */
  CU(cuStreamSynchronize(x.b));
}

static void *end_here(void *arg) {
  CUgraph graph;
  CUcontext ctx;
  const bool ready = cuDevicePrimaryCtxRetain(&ctx, 0) == CUDA_SUCCESS && cuCtxSetCurrent(ctx) == CUDA_SUCCESS;
  return (void *)(uintptr_t)(ready ? cuStreamEndCapture(arg, &graph) : CUDA_ERROR_UNKNOWN);
}

static void a_capture_ends_on_its_thread(void **state) {
  (void)state;
  board x = start();
  pthread_t thread;
  void *code = NULL;
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  assert_int_equal(pthread_create(&thread, NULL, end_here, x.a), 0);
  pthread_join(thread, &code);
  assert_int_equal((uintptr_t)code, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD);
}

static void a_thread_may_set_its_manners(void **state) {
  (void)state;
  board x = start();
  CUgraph graph;
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  CUdeviceptr a;
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_GLOBAL));
  CU(cuThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_GLOBAL);
  CU(cuMemAlloc(&a, 8));
  CU(cuMemFree(a));
  CU(cuThreadExchangeStreamCaptureMode(&mode));
  assert_int_equal(mode, CU_STREAM_CAPTURE_MODE_RELAXED);
  CU(cuStreamEndCapture(x.a, &graph));
  CU(cuGraphDestroy(graph));
  end(&x);
}

/* ---------------------------------------------------------------- graphs */

/* An event that a graph records each time. */
static void a_graph_takes_times(void **state) {
  (void)state;
  board x = start();
  CUgraph graph;
  CUgraphExec exec;
  CUevent from, to;
  fake_gate gate;
  float ms = -1;
  CU(cuEventCreate(&from, 0));
  CU(cuEventCreate(&to, 0));
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CU(cuEventRecordWithFlags(from, x.a, CU_EVENT_RECORD_EXTERNAL));
  fake_gate_put(&gate, x.a);
  CU(cuEventRecordWithFlags(to, x.a, CU_EVENT_RECORD_EXTERNAL));
  CU(cuStreamEndCapture(x.a, &graph));
  CU(cuGraphInstantiate(&exec, graph, 0));
  CU(cuGraphLaunch(exec, x.a));
  fake_nap(3000);
  atomic_store(&gate.open, true);
  CU(cuStreamSynchronize(x.a));
  CU(cuEventElapsedTime(&ms, from, to));
  assert_true(ms > 0.0f);
  CU(cuEventDestroy(from));
  CU(cuEventDestroy(to));
  CU(cuGraphDestroy(graph));
  CU(cuGraphExecDestroy(exec));
  end(&x);
}

static CUgraph record(const board *x, unsigned word, bool copies) {
  CUgraph graph;
  CU(cuStreamBeginCapture(x->a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CU(cuMemsetD32Async(x->memory, word, 4, x->a));
  if (copies) CU(cuMemcpyDtoDAsync(x->memory + 16, x->memory, 16, x->a));
  else CU(cuMemsetD32Async(x->memory + 16, word, 4, x->a));
  CU(cuStreamEndCapture(x->a, &graph));
  return graph;
}

static void an_exec_is_updated_by_a_graph_of_its_shape(void **state) {
  (void)state;
  board x = start();
  CUgraph first = record(&x, 1, true), second = record(&x, 2, true), other = record(&x, 3, false);
  CUgraphExec exec;
  CUgraphExecUpdateResultInfo info;
  unsigned got[8];
  CU(cuGraphInstantiate(&exec, first, 0));
  CU(cuGraphExecUpdate(exec, second, &info));
  assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_SUCCESS);
  assert_int_equal(fake_gpu_calls("updates"), 1);
  CU(cuGraphLaunch(exec, x.a));
  CU(cuStreamSynchronize(x.a));
  CU(cuMemcpyDtoH(got, x.memory, sizeof got));
  assert_int_equal(got[7], 2);
  assert_int_equal(cuGraphExecUpdate(exec, other, &info), CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
  assert_int_equal(info.result, CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
  assert_non_null(info.errorNode);
  assert_int_equal(fake_gpu_calls("updates"), 1);
  CU(cuGraphDestroy(first));
  CU(cuGraphDestroy(second));
  CU(cuGraphDestroy(other));
  CU(cuGraphExecDestroy(exec));
  end(&x);
}

static atomic_int running, most;
static void count_running(void *arg) {
  (void)arg;
  const int now = atomic_fetch_add(&running, 1) + 1;
  if (now > most) most = now;
  fake_nap(1000);
  atomic_fetch_sub(&running, 1);
}

static void an_exec_does_not_run_twice_at_a_time(void **state) {
  (void)state;
  board x = start();
  CUgraph graph;
  CUgraphExec exec;
  CU(cuStreamBeginCapture(x.a, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
  CU(cuLaunchHostFunc(x.a, count_running, NULL));
  CU(cuStreamEndCapture(x.a, &graph));
  CU(cuGraphInstantiate(&exec, graph, 0));
  for (int i = 0; i < 8; i++) CU(cuGraphLaunch(exec, i % 2 == 0 ? x.a : x.b));
  CU(cuCtxSynchronize());
  assert_int_equal(most, 1);
  CU(cuGraphDestroy(graph));
  CU(cuGraphExecDestroy(exec));
  assert_int_equal(cuGraphLaunch(exec, x.a), CUDA_ERROR_INVALID_HANDLE);
  assert_int_equal(fake_gpu_misuse(), 1);
}

/* Counts what went wrong: cmocka's assertions are for the case's own thread. */
static void *use_streams(void *arg) {
  (void)arg;
  uintptr_t wrong = 0;
  CUcontext ctx;
  wrong += cuDevicePrimaryCtxRetain(&ctx, 0) != CUDA_SUCCESS || cuCtxSetCurrent(ctx) != CUDA_SUCCESS;
  for (int i = 0; i < 50; i++) {
    CUdeviceptr a = 0;
    unsigned word = 0;
    CUstream own = NULL;
    wrong += cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS;
    wrong += cuMemAllocAsync(&a, 64, own) != CUDA_SUCCESS;
    wrong += cuMemsetD32Async(a, (unsigned)i, 16, own) != CUDA_SUCCESS;
    wrong += cuMemcpyDtoHAsync(&word, a + 60, 4, own) != CUDA_SUCCESS || word != (unsigned)i;
    wrong += cuMemFreeAsync(a, own) != CUDA_SUCCESS;
    wrong += cuStreamDestroy(own) != CUDA_SUCCESS; /* with work under way */
  }
  wrong += cuCtxSetCurrent(NULL) != CUDA_SUCCESS || cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS;
  return (void *)wrong;
}

static void threads_share_a_device(void **state) {
  (void)state;
  board x = start();
  pthread_t threads[3];
  for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_streams, NULL), 0);
  for (int i = 0; i < 3; i++) {
    void *wrong = NULL;
    pthread_join(threads[i], &wrong);
    assert_null(wrong);
  }
  CU(cuCtxSynchronize());
  assert_int_equal(fake_gpu_live("allocations"), 1);
  end(&x);
}

CASES(CASE(streams_keep_their_order_and_wait_for_events), CASE(the_default_stream_waits_for_blocking_ones),
      CASE(only_pinned_copies_are_asynchronous), CASE(memory_of_another_streams_order_is_not_there_yet),
      CASE(a_host_function_may_not_call_the_driver), CASE(events_tell_times), CASE(a_capture_forks_and_joins),
      CASE(what_a_capture_cannot_hold_breaks_it), CASE(captures_are_kept_apart), CASE(a_capture_ends_on_its_thread),
      CASE(a_thread_may_set_its_manners), CASE(a_graph_takes_times), CASE(an_exec_is_updated_by_a_graph_of_its_shape),
      CASE(an_exec_does_not_run_twice_at_a_time), CASE(threads_share_a_device))
#else
static void it_is_not_built(void **state) {
  (void)state;
  FAKE_ONLY
}
CASES(CASE(it_is_not_built))
#endif
