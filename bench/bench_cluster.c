/* bench/bench_cluster.c: what ranks cost, for bench/cluster.py under mpirun: messages between ranks 0 and 1, and a pipeline of one node a
 * rank. Rank 0 prints one line a round. */
#include <string.h>

#include <mpi.h>

#include "bench.h"
#include "executor/ranks/ranks.h"
#include "heddle/mpi.h"

static int rank, size;

/* ---- messages: there and back, by persistent requests on both sides; ours through the waits of a run */

typedef struct ends {
  MPI_Request send, receive; /* the hand-written program's */
  void *our_send, *our_receive;
  uint64_t bytes;
} ends;

static void by_hand(ends *e) {
  if (rank == 0) MPI_Start(&e->receive), MPI_Start(&e->send), MPI_Wait(&e->send, MPI_STATUS_IGNORE);
  else MPI_Start(&e->receive);
  MPI_Wait(&e->receive, MPI_STATUS_IGNORE);
  if (rank != 0) MPI_Start(&e->send), MPI_Wait(&e->send, MPI_STATUS_IGNORE);
}

static void wait_for(heddle__ranks *r, void *request, uint64_t bytes) {
  heddle_error err;
  heddle_status s = HEDDLE_OK;
  (void)heddle__ranks_wait(r, request, 1 - (uint32_t)rank, bytes, "a message", NULL, &s, &err);
  check(s, &err);
}

static void by_us(heddle__ranks *r, ends *e) {
  heddle_error err;
  check(heddle__ranks_start(r, e->our_receive, &err), &err);
  if (rank != 0) wait_for(r, e->our_receive, e->bytes);
  check(heddle__ranks_start(r, e->our_send, &err), &err);
  wait_for(r, e->our_send, e->bytes);
  if (rank == 0) wait_for(r, e->our_receive, e->bytes);
}

static void messages(heddle_context *ctx, uint64_t bytes, int rounds, int number) {
  heddle__ranks *r = heddle__context_ranks(ctx);
  heddle_error err;
  char *out = calloc(1, (size_t)bytes), *in = calloc(1, (size_t)bytes);
  ends e = {.bytes = bytes};
  const uint32_t other = 1 - (uint32_t)rank;
  MPI_Send_init(out, (int)bytes, MPI_BYTE, (int)other, 1, MPI_COMM_WORLD, &e.send);
  MPI_Recv_init(in, (int)bytes, MPI_BYTE, (int)other, 1, MPI_COMM_WORLD, &e.receive);
  check(heddle__ranks_send_init(r, out, bytes, other, 9, &e.our_send, &err), &err);
  check(heddle__ranks_recv_init(r, in, bytes, other, 9, &e.our_receive, &err), &err);
  for (int k = -1; k < rounds; k++) { /* the first one is not counted */
    double t[3] = {now_ns(), 0, 0};
    for (int i = 0; i < number; i++) by_hand(&e);
    t[1] = now_ns();
    for (int i = 0; i < number; i++) by_us(r, &e);
    t[2] = now_ns();
    if (rank == 0 && k >= 0) printf("%.0f %.0f\n", (t[2] - t[1]) / number, (t[1] - t[0]) / number);
  }
  MPI_Request_free(&e.send);
  MPI_Request_free(&e.receive);
  heddle__ranks_free(r, e.our_send);
  heddle__ranks_free(r, e.our_receive);
  free(out);
  free(in);
}

/* ---- the pipeline: Tanh of 4 KB on the sim of each rank */

static heddle_model *chain(heddle_context *ctx, int nodes, const char *devices, bool spread, uint32_t in_flight) {
  static char text[8192], rules[64][32];
  const char *place[64];
  heddle_error err;
  heddle_graph *g = NULL;
  heddle_model *m = NULL;
  size_t n = (size_t)snprintf(
      text, sizeof text,
      "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}");
  for (int i = 0; i < nodes; i++) {
    n += (size_t)snprintf(text + n, sizeof text - n, ",{\"op\":\"Tanh\",\"name\":\"n%d\",\"inputs\":[[%d,0,0]]}", i, i);
    snprintf(rules[i], sizeof rules[i], "n%d=%d/sim:0", i, i);
    place[i] = rules[i];
  }
  n += (size_t)snprintf(text + n, sizeof text - n, "],\"arg_nodes\":[0],\"heads\":[[%d,0,0]],\"node_row_ptr\":[0",
                        nodes);
  for (int i = 0; i <= nodes; i++) n += (size_t)snprintf(text + n, sizeof text - n, ",%d", i + 1);
  n += (size_t)snprintf(text + n, sizeof text - n, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\"");
  for (int i = 0; i < nodes; i++) n += (size_t)snprintf(text + n, sizeof text - n, ",null");
  n += (size_t)snprintf(text + n, sizeof text - n, "]],\"shape\":[\"list_shape\",[[1024]");
  for (int i = 0; i < nodes; i++) n += (size_t)snprintf(text + n, sizeof text - n, ",null");
  n += (size_t)snprintf(text + n, sizeof text - n, "]]}}");
  check(heddle_graph_parse(text, n, "chain", NULL, &g, &err), &err);
  const heddle_model_options o = {.struct_size = sizeof o,
                                  .devices = devices,
                                  .place = place,
                                  .in_flight = in_flight,
                                  .n_place = spread ? (size_t)nodes : 0};
  check(heddle_model_create(ctx, g, NULL, &o, &m, &err), &err);
  heddle_graph_release(g);
  return m;
}

static heddle_executor *executor_of(heddle_model *m) {
  heddle_error err;
  heddle_executor *ex = NULL;
  heddle_tensor *x = NULL;
  check(heddle_executor_create(m, &ex, &err), &err);
  check(heddle_tensor_create(NULL, (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1}, (const int64_t[]){1024}, 1, &x, &err),
        &err);
  memset(heddle_tensor_data(x), 0, 4096);
  check(heddle_executor_set_input(ex, 0, x, &err), &err);
  heddle_tensor_release(x);
  return ex;
}

/* Nanoseconds a run, of so many with depth in flight, and depth more that fill the pipeline first. */
static double stream(heddle_executor *ex, int runs, int depth) {
  heddle_error err;
  double start = 0;
  for (int k = 0; k < runs + 2 * depth; k++) {
    if (k >= depth) check(heddle_executor_wait(ex, HEDDLE_FOREVER, &err), &err);
    if (k == 2 * depth - 1) start = now_ns();
    if (k < runs + depth) check(heddle_executor_start(ex, &err), &err);
  }
  return (now_ns() - start) / runs;
}

/* A line: a run of the stream; a stage alone; a run alone; a message there and back by hand. */
static void pipeline(heddle_context *ctx, const heddle_setting *settings, size_t n_settings, int rounds, int runs) {
  enum { DEPTH = 8, PINGS = 50 };
  heddle_error err;
  heddle_context *plain = NULL;
  check(heddle_context_create(settings, n_settings, NULL, NULL, &plain, &err), &err);
  heddle_model *m = chain(ctx, size, "*/sim:0", true, DEPTH), *one = chain(ctx, size, "*/sim:0", true, 1);
  heddle_model *alone = chain(plain, 1, "sim:0", false, 1);
  heddle_executor *ex = executor_of(m), *ex_one = executor_of(one), *ex_alone = executor_of(alone);
  char out[4096] = {0}, in[4096];
  ends e = {.bytes = sizeof out};
  if (rank < 2) {
    MPI_Send_init(out, sizeof out, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &e.send);
    MPI_Recv_init(in, sizeof in, MPI_BYTE, 1 - rank, 1, MPI_COMM_WORLD, &e.receive);
  }
  for (int k = -1; k < rounds; k++) {
    const double many = stream(ex, runs, DEPTH), stage = stream(ex_alone, runs / 4 + 1, 1);
    const double latency = stream(ex_one, runs / 4 + 1, 1);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = now_ns();
    for (int i = 0; i < PINGS && rank < 2; i++) by_hand(&e);
    const double ping = (now_ns() - start) / PINGS;
    if (rank == 0 && k >= 0) printf("%.0f %.0f %.0f %.0f\n", many, stage, latency, ping);
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (rank < 2) {
    MPI_Request_free(&e.send);
    MPI_Request_free(&e.receive);
  }
  heddle_executor_release(ex);
  heddle_executor_release(ex_one);
  heddle_executor_release(ex_alone);
  heddle_model_release(m);
  heddle_model_release(one);
  heddle_model_release(alone);
  heddle_context_release(plain);
}

int main(int argc, char **argv) {
  heddle_error err;
  heddle_context *ctx = NULL;
  int level = 0;
  if (argc != 5) {
    fprintf(stderr,
            "usage: mpirun -n 2 bench_cluster messages BYTES ROUNDS NUMBER, or -n 4 ... pipeline OP_US ROUNDS RUNS\n");
    return 2;
  }
  const heddle_setting settings[] = {{"sim.op_us", argv[2]}, {"threads", "1"}};
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  check(heddle_context_create_mpi(NULL, settings, 2, NULL, NULL, &ctx, &err), &err);
  if (strcmp(argv[1], "messages") == 0 && size == 2)
    messages(ctx, strtoull(argv[2], NULL, 10), atoi(argv[3]), atoi(argv[4]));
  else pipeline(ctx, settings, 2, atoi(argv[3]), atoi(argv[4]));
  heddle_context_release(ctx);
  MPI_Finalize();
  return 0;
}
