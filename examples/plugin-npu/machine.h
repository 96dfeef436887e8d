/* machine.h: the accelerator itself, as its driver sees it: a DRAM, three modules with their scratchpads, and a cycle
 * count. It knows nothing of Heddle; one thread at a time. */
#ifndef NPU_MACHINE_H
#define NPU_MACHINE_H

#include "isa.h"

typedef struct npu_machine {
  uint8_t *dram;
  uint64_t dram_bytes;
  int8_t input[NPU_INPUT_VECTORS][NPU_LANES];
  int8_t weight[NPU_WEIGHT_TILES][NPU_LANES][NPU_LANES];
  int32_t acc[NPU_ACC_VECTORS][NPU_LANES];
  uint64_t cycles; /* since it was switched on */
} npu_machine;

/* What a program ended with. */
typedef enum npu_end {
  NPU_DONE,
  NPU_BAD_ADDRESS,     /* an index outside a scratchpad, or an address outside DRAM */
  NPU_BAD_INSTRUCTION, /* an unknown operation, or one of another module */
  NPU_STUCK            /* every module waits for a token */
} npu_end;

/* Runs the n instructions that lie in DRAM at address, and adds what they took to cycles. After anything but NPU_DONE
 * *where is the instruction at fault. */
npu_end npu_machine_run(npu_machine *m, uint64_t address, uint64_t n, uint64_t *where);

/* Cycles of a copy of so many bytes between the host and DRAM, or within it. */
uint64_t npu_copy_cycles(uint64_t bytes);

#endif
