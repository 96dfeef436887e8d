/* frontends/onnx/ml.h: what the files that read domain ai.onnx.ml share. Each of its operators becomes nodes of ONNX's own
 * operators and of operators/ml.def, with what its attributes hold as constants: long lists never become JSON, and what
 * runs on an accelerator does. A string is a number by then: strings.c.
 *
 * What is wrong first stays in the ml, and everything after it does nothing and gives NULL or 0. Private to frontends/onnx. */
#ifndef HEDDLE_ONNX_ML_H
#define HEDDLE_ONNX_ML_H

#include "frontends/onnx/types.h"
#include "frontends/onnx/upgrade.h"

typedef struct heddle__ml {
  heddle__onnx_reader *r;
  Onnx__NodeProto *node;
  heddle_status s;
  bool refused; /* a problem was noted */
} heddle__ml;

static inline bool heddle__ml_good(const heddle__ml *m) {
  return m->s == HEDDLE_OK && !m->refused;
}

/* Notes what is not supported or wrong, after the node's name. */
void heddle__ml_refuse(heddle__ml *m, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Memory of the reading, for n elements. */
void *heddle__ml_take(heddle__ml *m, size_t n, size_t width);

/* ---- attributes: lists and how long they are; of another kind: refused. Absent: NULL and 0, or the fallback. */
const float *heddle__ml_floats(heddle__ml *m, const char *name, size_t *n);
const int64_t *heddle__ml_ints(heddle__ml *m, const char *name, size_t *n);
int64_t heddle__ml_int(heddle__ml *m, const char *name, int64_t fallback);
float heddle__ml_float(heddle__ml *m, const char *name, float fallback);
bool heddle__ml_has(const heddle__ml *m, const char *name);
/* The numbers of strings. */
const int64_t *heddle__ml_codes(heddle__ml *m, const char *name, size_t *n);
int64_t heddle__ml_code(heddle__ml *m, const char *name, const char *fallback);
/* Which of the words, between spaces, a string attribute is. */
int heddle__ml_choice(heddle__ml *m, const char *name, const char *fallback, const char *words);
/* A tensor, as numbers of its own type; a tensor of strings as their numbers, of type ONNX_STRING. */
const void *heddle__ml_tensor(heddle__ml *m, const char *name, int32_t *type, size_t *n);

/* ---- nodes. out: the name of the result; NULL: a new one, which is given. */
const char *heddle__ml_make(heddle__ml *m, const char *op, const char *out, size_t n, const char *const *in);
const char *heddle__ml_1(heddle__ml *m, const char *op, const char *a, const char *out);
const char *heddle__ml_2(heddle__ml *m, const char *op, const char *a, const char *b, const char *out);
const char *heddle__ml_where(heddle__ml *m, const char *condition, const char *a, const char *b, const char *out);
/* The node that was made last, to be given attributes; is_own: of domain heddle. NULL where there is none. */
Onnx__NodeProto *heddle__ml_last(heddle__ml *m, bool is_own);
void heddle__ml_set_int(heddle__ml *m, const char *name, int64_t value); /* of the last node */
void heddle__ml_set_float(heddle__ml *m, const char *name, float value);
void heddle__ml_set_text(heddle__ml *m, const char *name, const char *value);

/* Constants. type: ONNX_FLOAT, ONNX_DOUBLE, ONNX_INT64, ONNX_INT32 or ONNX_STRING; data stays where it is. n1 < 0: of one
 * dimension; n0 < 0: of none. */
const char *heddle__ml_constant(heddle__ml *m, int32_t type, const void *data, int64_t n0, int64_t n1);
const char *heddle__ml_number(heddle__ml *m, float value);
const char *heddle__ml_whole(heddle__ml *m, int64_t value);
const char *heddle__ml_shape(heddle__ml *m, int64_t value); /* of one dimension */

/* Input i as a matrix of float32, or of float64 where it is of that and keeps; *type, which may be NULL: of which. */
const char *heddle__ml_matrix(heddle__ml *m, size_t i, bool keeps, int32_t *type);
const char *heddle__ml_cast(heddle__ml *m, const char *x, int32_t to, const char *out);
/* Over the last dimension, which stays. */
const char *heddle__ml_reduce(heddle__ml *m, const char *op, const char *x);

/* The name of output k, or NULL where nothing uses it. */
const char *heddle__ml_output(const heddle__ml *m, size_t k);

/* The labels of a classifier's classes: a constant, and how many. */
const char *heddle__ml_labels(heddle__ml *m, const char *ints, const char *strings, size_t *n);

/* Scores with the node's post_transform to output k. */
enum { HEDDLE__ML_NONE, HEDDLE__ML_SOFTMAX, HEDDLE__ML_LOGISTIC, HEDDLE__ML_SOFTMAX_ZERO, HEDDLE__ML_PROBIT };
int heddle__ml_post(heddle__ml *m);
void heddle__ml_transform(heddle__ml *m, int post, const char *scores, const char *out);

/* The same for two classes whose one score is s, [n, 1]: [-s, s] or [1 - s, s], or their logistic. */
void heddle__ml_two(heddle__ml *m, int post, const char *s, bool is_signed, const char *out);

/* Output 0: the label of each index, [n]. */
void heddle__ml_pick(heddle__ml *m, const char *labels, const char *index);

/* ml_*.c: the operators, a file a family. */
typedef void (*heddle__ml_fn)(heddle__ml *m);
void heddle__ml_tree_ensemble(heddle__ml *m);
void heddle__ml_tree_classifier(heddle__ml *m);
void heddle__ml_tree_regressor(heddle__ml *m);
void heddle__ml_linear_classifier(heddle__ml *m);
void heddle__ml_linear_regressor(heddle__ml *m);
void heddle__ml_svm_classifier(heddle__ml *m);
void heddle__ml_svm_regressor(heddle__ml *m);
void heddle__ml_array_feature_extractor(heddle__ml *m);
void heddle__ml_binarizer(heddle__ml *m);
void heddle__ml_category_mapper(heddle__ml *m);
void heddle__ml_feature_vectorizer(heddle__ml *m);
void heddle__ml_imputer(heddle__ml *m);
void heddle__ml_label_encoder(heddle__ml *m);
void heddle__ml_normalizer(heddle__ml *m);
void heddle__ml_one_hot_encoder(heddle__ml *m);
void heddle__ml_scaler(heddle__ml *m);
void heddle__ml_zip_map(heddle__ml *m);

/* The node becomes one that gives what it gave, for what is behind it is still looked at. Returns false: it is not done. */
bool heddle__ml_stand_in(heddle__ml *m);

/* ml.c: a node of ai.onnx.ml as nodes of a graph; others stay as they are. */
HEDDLE__UPGRADE(heddle__upgrade_ml);

/* strings.c: the number that stands for a string. HEDDLE_EFORMAT where it is no text. */
heddle_status heddle__onnx_code(heddle__onnx_reader *r, const void *text, size_t bytes, int64_t *code);

#endif
