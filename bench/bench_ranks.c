/* bench/bench_ranks.c: one rank of many makes its plan; the others are simulated: they say of themselves what this one says, which is
 * what ranks with the same devices do. The graph is a chain of nodes, annotated over all devices in order, or placed automatically.
 * bench_ranks RANKS DEVICES NODES annotated|auto prints seconds of processor time of heddle_model_create and the peak of
 * resident memory in KiB. */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "heddle/ranks.h"

/* As agree.c has them: a text's length and hash, whether it is wanted, the text, and what all say. */
enum { TAG_HEAD, TAG_WANTED, TAG_TEXT, TAG_ALL };

typedef struct peers {
  uint32_t n, step; /* step: of what rank 0 sends under TAG_ALL */
  unsigned char head[16];
} peers;

typedef struct request {
  void *data;
  uint64_t bytes;
  uint32_t tag;
  int receives;
} request;

static heddle_status make(void *data, uint64_t bytes, uint32_t tag, int receives, void **out) {
  request *r = malloc(sizeof *r);
  if (r == NULL) return HEDDLE_ENOMEM;
  *r = (request){data, bytes, tag, receives};
  *out = r;
  return HEDDLE_OK;
}

static heddle_status send_init(void *self, const void *data, uint64_t bytes, uint32_t to, uint32_t tag, void **out,
                               heddle_error *err) {
  (void)self, (void)to, (void)err;
  return make((void *)(uintptr_t)data, bytes, tag, 0, out);
}

static heddle_status recv_init(void *self, void *data, uint64_t bytes, uint32_t from, uint32_t tag, void **out,
                               heddle_error *err) {
  (void)self, (void)from, (void)err;
  return make(data, bytes, tag, 1, out);
}

static heddle_status start(void *self, void *any, heddle_error *err) {
  peers *p = self;
  const request *r = any;
  const uint64_t one = 1;
  (void)err;
  if (!r->receives && r->tag == TAG_HEAD) memcpy(p->head, r->data, sizeof p->head);
  if (!r->receives) return HEDDLE_OK;
  memset(r->data, 0, (size_t)r->bytes); /* nothing is wanted; all ranks say the first text */
  if (r->tag != TAG_ALL) return HEDDLE_OK;
  if (p->step == 0) memcpy(r->data, &one, sizeof one);
  if (p->step == 2) memcpy(r->data, p->head, sizeof p->head);
  p->step = (p->step + 1) % 3;
  return HEDDLE_OK;
}

static heddle_status test(void *self, void *request, int *done, heddle_error *err) {
  (void)self, (void)request, (void)err;
  *done = 1;
  return HEDDLE_OK;
}

static void give_up(void *self, void *request) {
  (void)self;
  free(request);
}

static heddle_status send_note(void *self, const void *note, uint32_t bytes, uint32_t to, heddle_error *err) {
  (void)self, (void)note, (void)bytes, (void)to, (void)err;
  return HEDDLE_OK;
}

static heddle_status take_note(void *self, void *note, uint32_t *bytes, uint32_t *from, heddle_error *err) {
  (void)self, (void)err;
  memset(note, 0, 8);
  *bytes = 8; /* a sign of life of the rank before */
  *from = 0;
  static int turn;
  if (turn++ % 2 != 0) *bytes = 0;
  return HEDDLE_OK;
}

static heddle_graph *chain(uint32_t ranks, uint32_t devices, uint32_t nodes, int annotated) {
  heddle_error err;
  heddle_graph *g = NULL;
  char *text = malloc((size_t)nodes * 160 + 4096), *p = text;
  if (text == NULL) exit(1);
  p += sprintf(p, "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]}");
  for (uint32_t i = 0; i < nodes; i++) {
    const uint64_t at = (uint64_t)i * ranks * devices / nodes;
    p += sprintf(p, ",{\"op\":\"%s\",\"name\":\"n%u\",", i % 2 != 0 ? "Relu" : "Neg", (unsigned)i);
    if (annotated) p += sprintf(p, "\"device\":\"%u/sim:%u\",", (unsigned)(at / devices), (unsigned)(at % devices));
    p += sprintf(p, "\"inputs\":[[%u,0,0]]}", (unsigned)i);
  }
  p += sprintf(p, "],\"arg_nodes\":[0],\"heads\":[[%u,0,0]],\"node_row_ptr\":[0", (unsigned)nodes);
  for (uint32_t i = 1; i <= nodes + 1; i++) p += sprintf(p, ",%u", (unsigned)i);
  p += sprintf(p, "],\"attrs\":{\"dltype\":[\"list_str\",[\"float32\"");
  for (uint32_t i = 0; i < nodes; i++) p += sprintf(p, ",null");
  p += sprintf(p, "]],\"shape\":[\"list_shape\",[[256]");
  for (uint32_t i = 0; i < nodes; i++) p += sprintf(p, ",null");
  sprintf(p, "]]}}");
  check(heddle_graph_parse(text, strlen(text), "chain", NULL, &g, &err), &err);
  free(text);
  return g;
}

static double cpu_seconds(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

int main(int argc, char **argv) {
  if (argc != 5) {
    fprintf(stderr, "usage: bench_ranks RANKS DEVICES NODES annotated|auto\n");
    return 2;
  }
  const uint32_t ranks = (uint32_t)atoi(argv[1]), devices = (uint32_t)atoi(argv[2]), nodes = (uint32_t)atoi(argv[3]);
  const int annotated = strcmp(argv[4], "annotated") == 0;
  heddle_error err;
  heddle_context *ctx = NULL;
  heddle_model *m = NULL;
  struct rusage used;
  peers all = {.n = ranks};
  const heddle_comm comm = {sizeof comm, &all, 1,       ranks,     1 << 30,   send_init, recv_init,
                            start,       test, give_up, send_note, take_note, NULL};
  char count[16];
  snprintf(count, sizeof count, "%u", (unsigned)devices);
  const heddle_setting settings[] = {{"sim.devices", count}};
  check(heddle_context_create_ranks(&comm, settings, 1, NULL, NULL, &ctx, &err), &err);
  heddle_graph *g = chain(ranks, devices, nodes, annotated);
  const heddle_model_options o = {
      .struct_size = sizeof o, .devices = "*/sim:*", .flags = annotated ? 0 : HEDDLE_MODEL_PLACE_AUTO};
  const double begin = cpu_seconds();
  check(heddle_model_create(ctx, g, NULL, &o, &m, &err), &err);
  const double seconds = cpu_seconds() - begin;
  getrusage(RUSAGE_SELF, &used);
  printf("%.3f %ld\n", seconds, used.ru_maxrss);
  heddle_model_release(m);
  heddle_graph_release(g);
  heddle_context_release(ctx);
  return 0;
}
