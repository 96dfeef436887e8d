/* bench/bench_batch.c: clients that share a batcher, against runs of a fixed batch of as many items.
 * bench_batch MODEL DEVICES THREADS CLIENTS DIM... loads a model of one input, [n, DIM...], and one output. Each line
 * "WHAT RUNS" on standard input gives one line:
 *   fixed     nanoseconds an item, of runs of CLIENTS items in memory that is bound
 *   single    nanoseconds an item, of runs of one item
 *   batcher   nanoseconds an item; each client sends RUNS requests of one item, one after the other
 *   limit     the delay of the next line, which is 3/2 runs of CLIENTS items, and such a run: nanoseconds
 *   p99       the latency of requests under a third of the load that the model could serve: 99 of 100 take less */
#include <pthread.h>
#include <string.h>

#include "bench/bench.h"

enum { MOST_CLIENTS = 256, MOST_DIMS = 4 };

typedef struct client {
  heddle_batcher *b;
  heddle_tensor *x, *y;
  int runs;
  unsigned seed;
  double pause_ns;              /* the mean pause between requests; 0: none */
  double *took_ns;              /* one a request */
  pthread_barrier_t *both_ends; /* of what is timed: clients that serve already, as a server's do */
} client;

static heddle_error err;
static int64_t shape[1 + MOST_DIMS];
static uint32_t ndim;
static int n_clients;

static heddle_tensor *input(int64_t n) {
  heddle_tensor *t;
  shape[0] = n;
  check(heddle_tensor_create(NULL, HEDDLE_FLOAT32, shape, ndim, &t, &err), &err);
  float *data = heddle_tensor_data(t);
  for (uint64_t i = 0; i < heddle_tensor_bytes(t) / sizeof *data; i++) data[i] = (float)(i % 97) / 97;
  return t;
}

static void pause_for(client *c) {
  if (c->pause_ns == 0) return;
  c->seed = c->seed * 1103515245u + 12345u;
  const double part = (double)(c->seed >> 8 & 0xffff) / 65536; /* from 0 to twice the mean */
  const long long ns = (long long)(2 * part * c->pause_ns);
  nanosleep(&(struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)}, NULL);
}

static void *send_requests(void *arg) {
  client *c = arg;
  heddle_error e;
  heddle_batch_call call = {
      .struct_size = sizeof call, .inputs = &c->x, .n_inputs = 1, .outputs = &c->y, .n_outputs = 1};
  call.wait_ns = HEDDLE_FOREVER;
  pthread_barrier_wait(c->both_ends);
  for (int i = 0; i < c->runs; i++) {
    pause_for(c);
    const double start = now_ns();
    check(heddle_batcher_run(c->b, &call, NULL, 0, &e), &e);
    if (c->took_ns != NULL) c->took_ns[i] = now_ns() - start;
  }
  pthread_barrier_wait(c->both_ends);
  return NULL;
}

/* The time of all clients together, without that to start and to end their threads. */
static double serve(heddle_batcher *b, heddle_tensor **y, int runs, double pause_ns, double *took_ns) {
  static client clients[MOST_CLIENTS];
  static pthread_t threads[MOST_CLIENTS];
  pthread_barrier_t both_ends;
  if (pthread_barrier_init(&both_ends, NULL, (unsigned)n_clients + 1) != 0) exit(1);
  for (int i = 0; i < n_clients; i++) {
    clients[i] = (client){b, clients[i].x, y[i], runs, 77u * (unsigned)i + 1, pause_ns, NULL, &both_ends};
    if (clients[i].x == NULL) clients[i].x = input(1);
    if (took_ns != NULL) clients[i].took_ns = took_ns + (size_t)i * (size_t)runs;
    if (pthread_create(&threads[i], NULL, send_requests, &clients[i]) != 0) exit(1);
  }
  pthread_barrier_wait(&both_ends);
  const double start = now_ns();
  pthread_barrier_wait(&both_ends);
  const double all_ns = now_ns() - start;
  for (int i = 0; i < n_clients; i++) pthread_join(threads[i], NULL);
  pthread_barrier_destroy(&both_ends);
  return all_ns;
}

static heddle_batcher *batcher(heddle_model *m, double delay_ns) {
  heddle_batcher *b;
  heddle_batcher_options o = {
      .struct_size = sizeof o, .max_items = (uint32_t)n_clients, .max_delay_ns = (uint64_t)delay_ns};
  check(heddle_batcher_create(m, &o, &b, &err), &err);
  return b;
}

static heddle_executor *executor(heddle_model *m, int64_t n) {
  heddle_executor *ex;
  heddle_tensor *x = input(n);
  check(heddle_executor_create(m, &ex, &err), &err);
  check(heddle_executor_bind_input(ex, 0, x, &err), &err);
  heddle_tensor_release(x);
  check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
  return ex;
}

static double run_many(heddle_executor *ex, int runs) {
  const double start = now_ns();
  for (int i = 0; i < runs; i++) check(heddle_executor_run(ex, HEDDLE_FOREVER, &err), &err);
  return (now_ns() - start) / runs;
}

/* A tensor for one item of the output. */
static heddle_tensor *output(heddle_executor *one) {
  heddle_tensor *seen, *made;
  check(heddle_executor_view_output(one, 0, &seen, &err), &err);
  check(heddle_tensor_create(NULL, heddle_tensor_dtype(seen), heddle_tensor_shape(seen), heddle_tensor_ndim(seen),
                             &made, &err),
        &err);
  heddle_tensor_release(seen);
  return made;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

static double p99(heddle_batcher *b, heddle_tensor **y, int runs, double pause_ns) {
  const size_t n = (size_t)runs * (size_t)n_clients;
  double *took_ns = malloc(n * sizeof *took_ns);
  if (took_ns == NULL) exit(1);
  serve(b, y, runs, pause_ns, took_ns);
  qsort(took_ns, n, sizeof *took_ns, by_size);
  const double found = took_ns[n * 99 / 100];
  free(took_ns);
  return found;
}

int main(int argc, char **argv) {
  if (argc < 6 || argc > 5 + MOST_DIMS) return 2;
  n_clients = atoi(argv[4]);
  if (n_clients < 1 || n_clients > MOST_CLIENTS) return 2;
  ndim = (uint32_t)(argc - 4);
  for (uint32_t d = 1; d < ndim; d++) shape[d] = atoi(argv[4 + d]);
  heddle_context *ctx;
  heddle_model *m;
  const heddle_setting settings[] = {{"threads", argv[3]}};
  const heddle_model_options options = {.struct_size = sizeof options, .devices = argv[2], .optimize = "on"};
  check(heddle_context_create(settings, 1, NULL, NULL, &ctx, &err), &err);
  check(heddle_model_load(ctx, argv[1], NULL, &options, &m, &err), &err);
  heddle_executor *many = executor(m, n_clients), *one = executor(m, 1);
  heddle_tensor *y[MOST_CLIENTS];
  for (int i = 0; i < n_clients; i++) y[i] = output(one);
  const double run_ns = run_many(many, 3), delay_ns = 1.5 * run_ns;
  heddle_batcher *busy = batcher(m, 1e9), *calm = batcher(m, delay_ns);
  serve(busy, y, 2, 0, NULL);
  serve(calm, y, 2, 3 * run_ns, NULL);
  char line[128], what[64];
  int runs;
  while (fgets(line, sizeof line, stdin) != NULL && sscanf(line, "%63s %d", what, &runs) == 2 && runs > 0) {
    double ns = delay_ns + run_many(many, 1);
    if (strcmp(what, "fixed") == 0) ns = run_many(many, runs) / n_clients;
    if (strcmp(what, "single") == 0) ns = run_many(one, runs);
    if (strcmp(what, "batcher") == 0) ns = serve(busy, y, runs, 0, NULL) / runs / n_clients;
    if (strcmp(what, "p99") == 0) ns = p99(calm, y, runs, 3 * run_ns);
    printf("%.3f\n", ns);
    fflush(stdout);
  }
  heddle_batcher_release(busy);
  heddle_batcher_release(calm);
  heddle_executor_release(many);
  heddle_executor_release(one);
  for (int i = 0; i < n_clients; i++) heddle_tensor_release(y[i]);
  heddle_model_release(m);
  heddle_context_release(ctx);
  return 0;
}
