/* Any text as an elementwise expression: refused with a message, or a program whose steps use only what comes before
 * them, within the limits. The first byte says how many inputs there are. */
#include <stdlib.h>

#include "plugins/common/expr.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  expr e;
  heddle_error err = {0};
  if (size == 0) return 0;
  const uint32_t inputs = (uint32_t)(data[0] - '0') % (EXPR_INPUTS + 2);
  char *text = malloc(size);
  if (text == NULL) return 0;
  memcpy(text, data + 1, size - 1);
  text[size - 1] = '\0';
  const heddle_status s = expr_parse(text, inputs, &e, &err);
  if (s != HEDDLE_OK) {
    if (err.status != s || strncmp(err.text, "character ", 10) != 0) abort();
  } else {
    uint32_t used = 0;
    if (e.n_inputs != inputs || e.n_numbers > EXPR_NUMBERS || e.n_steps == 0 || e.n_steps > EXPR_STEPS) abort();
    for (uint32_t i = 0; i < e.n_steps; i++) {
      const expr_step *step = &e.steps[i];
      if (step->op >= EXPR_OP_COUNT || step->n_args == 0 || step->n_args > EXPR_ARGS) abort();
      for (uint32_t k = 0; k < step->n_args; k++) {
        const uint32_t arg = step->args[k];
        if (arg >= EXPR_OF_STEP + i || (arg < EXPR_OF_NUMBER && arg >= inputs)) abort();
        if (arg >= EXPR_OF_NUMBER && arg < EXPR_OF_STEP && arg - EXPR_OF_NUMBER >= e.n_numbers) abort();
        if (arg >= EXPR_OF_STEP) used |= UINT32_C(1) << (arg - EXPR_OF_STEP);
      }
    }
    if (used != (UINT32_C(1) << (e.n_steps - 1)) - 1) abort(); /* all but the last */
  }
  free(text);
  return 0;
}
