// Elements as words in memory, for shaders that move them or convert between types: WORD(n) is what n bytes are read and
// stored as, n being 1, 2, 4 or 8. A variant defines ONE_BYTE and TWO_BYTES where it has such.
#if defined(ONE_BYTE)
#extension GL_EXT_shader_8bit_storage : require
#endif
#if defined(TWO_BYTES)
#extension GL_EXT_shader_16bit_storage : require
#endif

#define WORD_1 uint8_t
#define WORD_2 uint16_t
#define WORD_4 uint
#define WORD_8 uvec2
#define WORD_OF(n) WORD_##n
#define WORD_(n) WORD_OF(n)
#define WORD(n) WORD_(n)
