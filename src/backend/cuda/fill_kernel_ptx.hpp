#pragma once
// The kernel that fills memory, as text that the driver compiles for its device: for PTX 4.3 and
// compute capability 3.0, so that every driver since CUDA 7.5 takes it.

namespace isthmus::cuda {

inline constexpr char k_fill_ptx[] = R"ptx(
// From `begin` to before `end`: each address gets the byte of the pattern that its last four bits
// tell. A thread writes an aligned unit of 16 bytes at a time, and of the first and the last unit
// what lies within, byte by byte.
.version 4.3
.target sm_30
.address_size 64

.visible .entry isthmus_fill(.param .u64 begin_parameter, .param .u64 end_parameter,
                             .param .align 16 .b8 pattern_parameter[16])
{
  .reg .pred over, is_part, is_early;
  .reg .u32 word_0, word_1, word_2, word_3, index, threads, blocks, byte;
  .reg .u64 begin, end, at, step, unit_end, from, to, pattern, place;

  ld.param.u64 begin, [begin_parameter];
  cvta.to.global.u64 begin, begin;
  ld.param.u64 end, [end_parameter];
  cvta.to.global.u64 end, end;
  ld.param.v4.u32 {word_0, word_1, word_2, word_3}, [pattern_parameter];
  mov.u64 pattern, pattern_parameter;

  mov.u32 index, %ctaid.x;
  mov.u32 threads, %ntid.x;
  mul.wide.u32 at, index, threads;
  mov.u32 index, %tid.x;
  cvt.u64.u32 step, index;
  add.u64 at, at, step;
  shl.b64 at, at, 4;
  and.b64 from, begin, -16;
  add.u64 at, at, from;
  mov.u32 blocks, %nctaid.x;
  mul.wide.u32 step, blocks, threads;
  shl.b64 step, step, 4;

next_unit:
  setp.ge.u64 over, at, end;
  @over bra done;
  add.u64 unit_end, at, 16;
  setp.lt.u64 is_early, at, begin;
  setp.gt.or.u64 is_part, unit_end, end, is_early;
  @is_part bra bytes;
  st.global.v4.u32 [at], {word_0, word_1, word_2, word_3};
  bra unit_over;

bytes:
  max.u64 from, at, begin;
  min.u64 to, unit_end, end;

next_byte:
  and.b64 place, from, 15;
  add.u64 place, place, pattern;
  ld.param.u8 byte, [place];
  st.global.u8 [from], byte;
  add.u64 from, from, 1;
  setp.lt.u64 over, from, to;
  @over bra next_byte;

unit_over:
  add.u64 at, at, step;
  bra next_unit;

done:
  ret;
}
)ptx";

}  // namespace isthmus::cuda
