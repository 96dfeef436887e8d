/* executor/plan.h: the plan that the passes hand on, from a graph to something that can be bound and replayed.
 *
 * A plan is made once for one key (shapes, values that feed shapes, placement, kept values, late parameters) and is
 * read-only afterwards. All its memory is one arena: heddle__plan_alloc, freed with the plan. Each section below says
 * which pass writes it; a pass reads what passes before it wrote, and writes nothing else:
 *
 *   infer - place - regions - layout - copies - streams - storage - prove
 *
 * Everything is an index: devices, values, regions, instances, steps, streams and allocations are numbered from 0 and
 * kept in arrays, so that a plan can be printed, compared and mutated.
 */
#ifndef HEDDLE_EXECUTOR_PLAN_H
#define HEDDLE_EXECUTOR_PLAN_H

#include "core/arena.h"
#include "core/context.h"
#include "executor/memory.h"
#include "executor/route_costs.h"
#include "graph/opschema.h"
#include "modules/module.h"
#include "graph/optimize/optimize.h"

#define HEDDLE__NONE UINT32_MAX

/* ---------------------------------------------------------------- what the caller asks for (model.c) */

/* An input of the graph as it is to be planned. */
typedef enum heddle__source {
  HEDDLE__SOURCE_INPUT,   /* set by the caller before each run */
  HEDDLE__SOURCE_CONSTANT /* bytes given when the model was created */
} heddle__source;

typedef struct heddle__plan_input {
  heddle__source source;
  bool has_shape;      /* dtype and shape below hold: from the file, the constant or the tensor that was set */
  heddle__known known; /* data: the constant's bytes, or an input's where it feeds a shape */
  uint32_t open_dims;  /* where the shapes are bounds: bit d: dimension d has changed, or has a maximum */
  uint32_t home;       /* 0: it lies in a slot that the host writes; else 1 + the device in whose memory it lies */
} heddle__plan_input;

/* A state value: what an output of one run is, an input of the next one is. Both lie in memory of one device, which the
 * copies pass chooses. */
typedef struct heddle__tie {
  uint32_t arg, output; /* positions in graph->args and among the plan's outputs */
} heddle__tie;

/* A value to keep for reading: one more output. */
typedef heddle__entry heddle__keep;

/* Who runs a region in place of its device's plugin, under the same contract: a function of a compiled library. self is
 * what prepare takes; stream and buffers that bind gets are the device's own. It may call back into the host, so it is
 * never recorded. row, which may be NULL, runs many launches of inline devices. */
typedef struct heddle__foreign {
  const heddle_op_table *op;
  heddle_pdevice *self;
  heddle__row_fn row;
} heddle__foreign;

typedef struct heddle__request {
  const heddle_graph *graph;
  heddle_context *ctx;
  const char *devices_from; /* the origin of the list: "call", a variable, a file, "default" */
  const char *left_out;     /* what the list lacks because a plugin was not trusted, a line each; "" or NULL: nothing */
  heddle_device *const *devices; /* in order of preference; the first is the fallback */
  const heddle__rule *rules;
  const heddle__plan_input *inputs; /* one per graph->args, or more */
  const heddle__keep *keep;
  const uint32_t *homes;              /* per output, as of plan_input.home; NULL: no output has one */
  const heddle__tie *ties;            /* n_ties of them */
  const heddle_module *library;       /* that tvm_op nodes call; NULL: none */
  const heddle__optimized *optimized; /* what graph was made by; NULL: it is as it was given */
  const heddle__foreign *foreigns;    /* with library: one per device; op NULL where its functions cannot run there */
  const uint64_t *limits;  /* per device: bytes that it may take (budget.h), 0: any; NULL: no device has any */
  const char *limits_from; /* the origin of the limits */
  const char *on_failure;  /* the policy on failed runs; NULL: they are errors */
  const uint32_t *rank;    /* per node: of two regions that could run, the lower goes first; NULL: as in the */
                           /* file. Read by regions only: need not outlive the making of a plan */
  const struct heddle__precedent *precedent; /* precedent.h; NULL: none. Read by place and regions only, as rank */
  struct heddle__recall *recall;             /* recall.h; NULL: plugins are asked. Until the plan is made, as rank */
  struct heddle__placer
      *placer; /* executor/place/placer.h: it places what nothing stronger places; NULL: preference does */
  uint32_t n_devices;
  uint32_t n_rules;
  uint32_t n_keep;
  uint32_t n_ties;
  uint32_t max_streams; /* compute streams a device; 0: as the device says, at most 2 */
  uint32_t in_flight;   /* runs at the same time, each in memory and on streams of its own; at least 1 */
  uint32_t programs;    /* that the model keeps; shown only */
  bool ignore_annotations;
  bool is_spare; /* the graph's annotations may name devices that were lost since: those nodes go by preference */
  bool no_capture;
  bool no_reuse; /* storage gives every value bytes of its own (debugging) */
  bool slots;    /* one buffer a value on every device, as for foreign code (testing) */
  bool fast;     /* reduced precision allowed */
  bool late;     /* values are brought to devices with a limit when they are used there, not when they are made */
  bool plain;    /* offers in plain layouts are taken, those with the smallest workspaces */
  const heddle__plan_input *bounds; /* of a size of a range: the inputs of the program for its bounds; shown only */
  const struct heddle__most *most;  /* the maxima of the options (most.h), n_most of them; shown only */
  uint32_t n_most;
  uint32_t growths; /* programs for bounds that the model has planned, this one included; shown only */
  bool open;        /* the shapes are bounds: launches will be resized (range.h) */
  bool quiet;       /* shapes are tried: outputs that are not as declared are not logged */
} heddle__request;

/* ---------------------------------------------------------------- devices and values: infer */

typedef struct heddle__plan_device {
  heddle_device *dev;
  bool is_inline;
  bool used; /* place: some node runs here */
} heddle__plan_device;

typedef enum heddle__value_kind {
  HEDDLE__VALUE_INPUT,
  HEDDLE__VALUE_CONSTANT,
  HEDDLE__VALUE_COMPUTED
} heddle__value_kind;

/* One tensor in one layout. The first graph->n_entries values are the graph's entries, in entry order; what layout adds
 * (reordered ones) comes after. */
typedef struct heddle__value {
  const char *name;    /* "conv1:0"; "conv1" where the node has one output */
  heddle__known known; /* dtype, shape, bytes (row-major size) and, for constants, data */
  heddle__value_kind kind;
  uint32_t arg;     /* INPUT, CONSTANT: position in graph->args, else HEDDLE__NONE */
  uint32_t region;  /* regions: the producer, else HEDDLE__NONE */
  uint32_t same_as; /* regions: for the result of a view, the value whose bytes it shares (never itself a view); else
                       the value's own number. The number that proofs use. */
  heddle_layout layout; /* layout: 0 for graph entries that are not wanted otherwise */
  uint64_t size;        /* layout: bytes in that layout */
  uint64_t align;       /* layout: at least 1 */
  heddle__image image;  /* regions: where functions of a library on a device that is not inline want it as an image */
  uint32_t open_dims;   /* infer: bit d: dimension d may be smaller in a run, where the shapes are bounds */
  bool used;            /* infer: reachable from a head or a kept node; others are not planned */
  bool feeds_shape;     /* infer: its bytes decide a shape; of an input they are part of the key */
} heddle__value;

/* ---------------------------------------------------------------- nodes: place */

struct heddle__offer;

typedef struct heddle__placed {
  uint32_t device;              /* index into devices, or HEDDLE__NONE for null nodes and what is not used */
  bool is_free;                 /* no rule and no annotation speaks of it */
  const char *cause;            /* "rule conv*=sim:0", "annotation", "follows x", "preference", "auto: ..." */
  heddle_pregion *ask;          /* what the device was asked about this node alone, and what it offered; NULL, 0 for */
  struct heddle__offer *offers; /* views */
  uint32_t n_offers;
} heddle__placed;

/* ---------------------------------------------------------------- regions: regions, layout */

typedef enum heddle__region_kind {
  HEDDLE__REGION_OP,     /* prepared by the device's plugin */
  HEDDLE__REGION_VIEW,   /* shares its input's bytes: no step */
  HEDDLE__REGION_REORDER /* an OP that layout made: node Reorder of domain heddle */
} heddle__region_kind;

/* A copy of a plugin's offer. */
typedef struct heddle__offer {
  uint32_t flags;
  const heddle_layout *input_layouts; /* n_inputs, never NULL */
  const heddle_layout *output_layouts;
  const uint32_t *input_flags;
  const int32_t *in_place, *extends;
  uint64_t n_in_place, n_extends;
  uint64_t workspace_bytes;
  uint64_t workspace_align;
  uint64_t kept_bytes, launch_bytes; /* held by the prepared operator, and by each launch */
  double cost_ns;
} heddle__offer;

typedef struct heddle__region {
  heddle__region_kind kind;
  uint32_t device;
  const char *label;     /* node names joined with '+' */
  const uint32_t *nodes; /* of the graph, in order; empty for a Reorder */
  uint32_t n_nodes;
  uint32_t n_inputs;
  uint32_t n_outputs;
  uint32_t n_offers;
  uint32_t *inputs;    /* values, each once, graph inputs and constants among them; layout replaces entries by
                                 reordered values */
  uint32_t *outputs;   /* values that are used outside */
  heddle_pregion *ask; /* what the plugin was asked; layout fills the tokens into its values; NULL for a view */
  heddle__offer *offers;
  uint32_t offer;                 /* layout: the one that was taken */
  int64_t stream;                 /* annotation of its nodes, or -1 */
  bool unasked;                   /* regions: no plugin was asked, since no step will run it (precedent.h) */
  const heddle__foreign *foreign; /* regions; NULL: the device's plugin runs it. Lives as long as the model */
} heddle__region;

/* ---------------------------------------------------------------- memory: copies */

/* Where bytes can be. Each inline device has one DEVICE space (plain host memory); each other device has a DEVICE
 * space, a PINNED one (host side of its copies; imported by inline devices, that compute in it) and, where the device
 * is unified, a UNIFIED one, in which device and inline devices both compute. Of PINNED and UNIFIED memory that is not
 * coherent there are two spaces, one that the host writes and one that the device writes. Images have a DEVICE space
 * for each size and type, whose allocations hold one value at a time. */
typedef struct heddle__space {
  uint32_t device;   /* whose plugin allocates */
  uint32_t kind;     /* HEDDLE_MEMORY_* */
  bool host_visible; /* the host has an address of it */
  bool coherent;     /* false: RELEASE and ACQUIRE steps are needed */
  uint64_t align;    /* of offsets */
  heddle__image image;
} heddle__space;

typedef enum heddle__role {
  HEDDLE__ROLE_TEMP,     /* lives between its first and last access */
  HEDDLE__ROLE_CONSTANT, /* filled before the program is published; an allocation of its own, owned by the model */
  HEDDLE__ROLE_INPUT,    /* written by the caller between runs; an allocation of its own, never reused */
  HEDDLE__ROLE_OUTPUT,   /* read by the caller after the run; an allocation of its own, which TEMPs use before it */
  HEDDLE__ROLE_WORKSPACE /* used within one step */
} heddle__role;

/* A value in a space. */
typedef struct heddle__instance {
  uint32_t value; /* HEDDLE__NONE for a workspace. Views have none: they use the instance of same_as. */
  uint32_t space;
  heddle__role role;
  uint32_t io;    /* INPUT: position in graph->args; OUTPUT: position in outputs; CONSTANT: position in args */
  uint64_t bytes; /* of the value; storage: of its room, where it is a state value with room between its rows */
  uint64_t align;
  uint32_t alloc;                 /* storage */
  uint64_t offset;                /* storage */
  uint32_t first_step, last_step; /* copies: in the list of steps; storage must not rely on list order alone */
} heddle__instance;

typedef enum heddle__step_kind {
  HEDDLE__STEP_OP,        /* region */
  HEDDLE__STEP_H2D,       /* src instance (host visible) to dst instance, on the stream of dst's device */
  HEDDLE__STEP_D2H,       /* src to dst (host visible), on the stream of src's device */
  HEDDLE__STEP_D2D,       /* within one device */
  HEDDLE__STEP_PEER,      /* between two devices of one plugin, on the stream of dst's device */
  HEDDLE__STEP_HOST_COPY, /* memcpy by the driving thread, both host visible; on a host stream */
  HEDDLE__STEP_RELEASE,   /* flush of src, on a host stream */
  HEDDLE__STEP_ACQUIRE,   /* invalidate of src, on a host stream */
  HEDDLE__STEP_FINISH     /* the last one: reads all outputs; on a host stream; nothing is run for it */
} heddle__step_kind;

typedef enum heddle__access_kind { HEDDLE__ACCESS_READ, HEDDLE__ACCESS_WRITE, HEDDLE__ACCESS_SYNC } heddle__access_kind;

typedef struct heddle__access {
  uint32_t instance;
  heddle__access_kind kind;
} heddle__access;

typedef enum heddle__wait_by { HEDDLE__BY_EVENT, HEDDLE__BY_FENCE, HEDDLE__BY_HOST } heddle__wait_by;

/* BY_EVENT: both streams on non-inline devices of one event domain of one plugin. BY_HOST: the awaited step is on a
 * host stream, and has run when its number there is reached. BY_FENCE: the driver holds this step back until the
 * awaited stream's fence has the value. */
typedef struct heddle__wait {
  uint32_t step;
  heddle__wait_by by;
} heddle__wait;

typedef struct heddle__step {
  heddle__step_kind kind;
  uint32_t region;     /* OP */
  uint32_t device;     /* whose stream; HEDDLE__NONE for HOST_COPY, RELEASE, ACQUIRE and FINISH: on any host stream */
  uint32_t src, dst;   /* instances, of copies; src of RELEASE and ACQUIRE; else HEDDLE__NONE */
  uint32_t workspace;  /* instance, or HEDDLE__NONE */
  const uint32_t *in;  /* OP: instance per region input; HEDDLE__NONE where absorbed or absent */
  const uint32_t *out; /* OP: instance per region output */
  const heddle__access *accesses;
  uint32_t n_accesses;
  uint32_t n_deps;
  const uint32_t *deps; /* copies: steps whose results it needs (true dependencies), earlier in the list */
  /* streams: */
  uint32_t stream;
  uint32_t seq; /* position within its stream, from 1 */
  uint32_t n_waits;
  const heddle__wait *waits; /* redundant ones removed */
  bool event_signal;         /* something waits for it by event */
  bool fence_signal;         /* something waits for it by fence */
} heddle__step;

/* ---------------------------------------------------------------- streams, allocations: streams, storage */

/* How a state value is updated: one for each of the request's ties. */
typedef struct heddle__update {
  uint32_t input, output; /* instances; HEDDLE__NONE where the plan has none of its own */
  uint32_t step;   /* that writes the output in the memory of the input; HEDDLE__NONE: each has memory of its own */
  const char *why; /* that is so; NULL where step is one */
  int64_t room;    /* both lie in memory with room for so many elements along axis; 0: as they are */
  uint32_t axis;
} heddle__update;

typedef struct heddle__plan_stream {
  uint32_t device; /* HEDDLE__NONE: the host's own stream, where the plan has no inline device */
  uint32_t kind;   /* HEDDLE_STREAM_* */
  bool is_host;    /* of an inline device: run by the driving thread */
  uint32_t n_steps;
} heddle__plan_stream;

typedef enum heddle__alloc_kind {
  HEDDLE__ALLOC_ARENA,    /* TEMP instances and workspaces of a space, by offset */
  HEDDLE__ALLOC_SLOT,     /* one buffer for TEMP instances, used whole (offset 0) one after another */
  HEDDLE__ALLOC_CONSTANT, /* one instance; owned by the model, shared by executors */
  HEDDLE__ALLOC_INPUT,    /* one instance, and of a state value that is updated in place that of the output */
  HEDDLE__ALLOC_OUTPUT    /* one instance, and TEMP ones at its begin that are over when it is written */
} heddle__alloc_kind;

typedef struct heddle__allocation {
  heddle__alloc_kind kind;
  uint32_t space;
  uint32_t instance; /* CONSTANT, INPUT, OUTPUT: which one; else HEDDLE__NONE */
  uint64_t bytes;
  uint64_t align;
} heddle__allocation;

/* How a value gets from one device to another, for people, and for the self-test of routes. */
typedef struct heddle__crossing {
  uint32_t value;
  uint32_t from, to; /* devices; HEDDLE__NONE: the host */
  uint32_t page;     /* SHARED: the device whose memory it lies in; else HEDDLE__NONE */
  heddle__route route;
  heddle__route_cost cost;
  uint64_t bytes; /* that are copied in one of its steps; 0 where none is */
} heddle__crossing;

/* An output of the plan: the graph's heads, then the kept values. */
typedef struct heddle__plan_output {
  uint32_t value;    /* as the graph names it (may be a view, an input, a constant) */
  uint32_t instance; /* copies: ROLE_OUTPUT, layout 0, an instance of its own; host visible, or in its home */
} heddle__plan_output;

typedef struct heddle__plan {
  heddle__request req; /* pointers borrowed from the model, which outlives the plan */
  heddle__arena arena;

  const heddle__schema *const *schemas; /* infer: per node; NULL: none. Of a size of a root, the root's */
  heddle__plan_device *devices;
  heddle__value *values;
  heddle__placed *placed;                /* one per node */
  const struct heddle__placing *placing; /* place: what was predicted; NULL where no placer was asked */
  heddle__region *regions;
  heddle__space *spaces;
  heddle__instance *instances;
  heddle__step *steps;
  heddle__crossing *crossings;
  heddle__plan_stream *streams;
  heddle__allocation *allocs;
  heddle__plan_output *outputs;
  heddle__update *updates; /* storage: one for each of req.ties */
  uint32_t n_devices, n_values, n_placed, n_regions, n_spaces, n_instances, n_steps, n_crossings, n_streams, n_allocs,
      n_outputs;

  /* streams: n_steps rows of n_streams numbers: row s, column t says how many steps of stream t have finished before
   * step s starts (for its own stream: the steps before it). What storage reuses memory on. */
  const uint32_t *clock;

  const char *fitted; /* what was done so that it keeps its limits (budget.h); NULL: nothing */

  uint32_t *local_of;       /* ask.c: scratch, a number per graph entry */
  bool followed;            /* it was made by a precedent */
  uint64_t proposal_visits; /* regions: edges that were followed to check proposals; for tests and scripts/bench */

  uint64_t pass_ns[9]; /* how long each pass took, in the order above, and the sum; for scripts/bench */
} heddle__plan;

/* Who prepares, binds, runs and frees the operators of a region. */
static inline const heddle_op_table *heddle__region_ops(const heddle__plan *plan, const heddle__region *r) {
  return r->foreign != NULL ? r->foreign->op : &plan->devices[r->device].dev->t->op;
}

/* The instance in which the caller, or the run before, leaves an input; HEDDLE__NONE: there is none, or several. */
static inline uint32_t heddle__input_instance(const heddle__plan *plan, uint32_t arg) {
  uint32_t found = HEDDLE__NONE;
  for (uint32_t i = 0; i < plan->n_instances; i++) {
    if (plan->instances[i].role != HEDDLE__ROLE_INPUT || plan->instances[i].io != arg) continue;
    if (found != HEDDLE__NONE) return HEDDLE__NONE;
    found = i;
  }
  return found;
}

/* The state value that is updated in place of which the instance is the input or the output; NULL: none. */
static inline const heddle__update *heddle__instance_update(const heddle__plan *plan, uint32_t instance) {
  for (uint32_t k = 0; k < plan->req.n_ties; k++) {
    const heddle__update *u = &plan->updates[k];
    if (u->step != HEDDLE__NONE && (u->input == instance || u->output == instance)) return u;
  }
  return NULL;
}

/* How many elements an instance has room for, along an axis of its update; 0: it lies as it is. */
static inline int64_t heddle__instance_room(const heddle__plan *plan, uint32_t instance) {
  const heddle__update *u = heddle__instance_update(plan, instance);
  return u != NULL ? u->room : 0;
}

/* storage_updates.c: writes the room of state values into what a plugin is given of a region. */
void heddle__give_room(const heddle__plan *plan, const heddle__region *r, heddle_pregion *ask);

/* The instance that a run makes of an input in its memory, and the input that a step keeps while it writes an instance in
 * its memory; HEDDLE__NONE: none. */
static inline uint32_t heddle__input_becomes(const heddle__plan *plan, uint32_t input) {
  for (uint32_t k = 0; k < plan->req.n_ties; k++)
    if (plan->updates[k].step != HEDDLE__NONE && plan->updates[k].input == input) return plan->updates[k].output;
  return HEDDLE__NONE;
}
static inline uint32_t heddle__write_keeps(const heddle__plan *plan, uint32_t step, uint32_t output) {
  for (uint32_t k = 0; k < plan->req.n_ties; k++)
    if (plan->updates[k].step == step && plan->updates[k].output == output) return plan->updates[k].input;
  return HEDDLE__NONE;
}

/* How often an allocation is there: once for each run in flight, but for constants, which all runs share. */
static inline uint32_t heddle__plan_sets(const heddle__plan *plan, uint32_t alloc) {
  return plan->allocs[alloc].kind == HEDDLE__ALLOC_CONSTANT ? 1 : plan->req.in_flight;
}

/* Zeroed memory of the plan's arena; NULL when memory is out. */
void *heddle__plan_alloc(heddle__plan *plan, size_t count, size_t size);
char *heddle__plan_format(heddle__plan *plan, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* HEDDLE_ETIMEOUT or HEDDLE_ECANCELED where the work of this thread is to end (core/watch.h): asked for each node that is
 * looked at. node may be NULL. */
heddle_status heddle__plan_watch(const heddle__plan *plan, const char *node, heddle_error *err);

/* Runs all passes. *out is freed with heddle__plan_free (takes NULL). Pure but for the logs: opens a device only where
 * a plugin answered HEDDLE_ENEEDSOPEN, or where a placer measures, which takes its time. Any thread. */
heddle_status heddle__plan_make(const heddle__request *request, heddle__plan **out, heddle_error *err);
/* The first pass alone: a plan that knows dtypes, shapes and schemas, and its devices. */
heddle_status heddle__plan_infer(const heddle__request *request, heddle__plan **out, heddle_error *err);
void heddle__plan_free(heddle__plan *plan);

/* Which inputs' bytes decide shapes, through operators or straight: feeds gets one bool per graph->args. The bytes of
 * such an input (known.data) are needed before a plan can be made; without them infer answers HEDDLE_EUNSUPPORTED. */
heddle_status heddle__shape_feeds(const heddle_graph *graph, bool *feeds, heddle_error *err);

/* The passes, in order; each in the file of its name. */
heddle_status heddle__pass_infer(heddle__plan *plan, heddle_error *err);

/* open_dims.c: sets open_dims of the values that have been inferred for bounds. */
heddle_status heddle__open_dims(heddle__plan *plan, heddle_error *err);

heddle_status heddle__pass_place(heddle__plan *plan, heddle_error *err);
heddle_status heddle__pass_regions(heddle__plan *plan, heddle_error *err);
heddle_status heddle__pass_layout(heddle__plan *plan, heddle_error *err);
heddle_status heddle__pass_copies(heddle__plan *plan, heddle_error *err);
heddle_status heddle__pass_streams(heddle__plan *plan, heddle_error *err);
heddle_status heddle__pass_storage(heddle__plan *plan, heddle_error *err);
heddle_status heddle__pass_prove(heddle__plan *plan, heddle_error *err);

#endif
