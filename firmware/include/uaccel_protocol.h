/* The numbers of the session protocol (docs/protocol.md).
 *
 * Written by scripts/protocol.py from firmware/protocol.toml; do not edit. */
#ifndef UACCEL_PROTOCOL_H
#define UACCEL_PROTOCOL_H

#define UACCEL_PROTOCOL_VERSION 1u
#define UACCEL_FROM_DEVICE 0x80u
#define UACCEL_MOST_RUNS 65535u

/* A packet: header, body, CRC-32. */
#define UACCEL_PACKET_TYPE_AT 0u
#define UACCEL_PACKET_SEQUENCE_AT 1u
#define UACCEL_PACKET_TOKEN_AT 3u
#define UACCEL_PACKET_BYTES 7u

/* Begins a session: the packet's token becomes the device's, and the next request has sequence 1. */
#define UACCEL_TYPE_HELLO 0x01u
#define UACCEL_HELLO_VERSION_AT 0u
#define UACCEL_HELLO_BYTES 2u

/* Writes a piece of the inputs. */
#define UACCEL_TYPE_WRITE 0x02u
#define UACCEL_WRITE_OFFSET_AT 0u
#define UACCEL_WRITE_BYTES 4u

/* Runs the model on the inputs that were written. */
#define UACCEL_TYPE_RUN 0x03u
#define UACCEL_RUN_RUN_AT 0u
#define UACCEL_RUN_COUNT_AT 4u
#define UACCEL_RUN_INPUT_CRC_AT 8u
#define UACCEL_RUN_OUTPUTS_AT 12u
#define UACCEL_RUN_CONTINUES_AT 13u
#define UACCEL_RUN_BYTES 14u

/* Reads a range of an object; `data` packets bring it. */
#define UACCEL_TYPE_READ 0x04u
#define UACCEL_READ_OBJECT_AT 0u
#define UACCEL_READ_INDEX_AT 1u
#define UACCEL_READ_RUN_AT 3u
#define UACCEL_READ_OFFSET_AT 7u
#define UACCEL_READ_LENGTH_AT 11u
#define UACCEL_READ_BYTES 15u

/* Says which log lines the device may send from now on. */
#define UACCEL_TYPE_VERBOSITY 0x05u
#define UACCEL_VERBOSITY_LEVEL_AT 0u
#define UACCEL_VERBOSITY_BYTES 1u

/* Restarts the firmware, after the answer. */
#define UACCEL_TYPE_RESET 0x06u

/* Writes a piece of the state, from which a `run` that `continues` goes on. */
#define UACCEL_TYPE_WRITE_STATE 0x07u
#define UACCEL_WRITE_STATE_MARK_AT 0u
#define UACCEL_WRITE_STATE_OFFSET_AT 4u
#define UACCEL_WRITE_STATE_BYTES 8u

/* Who is there. */
#define UACCEL_TYPE_HELLO_REPLY 0x81u
#define UACCEL_HELLO_REPLY_VERSION_AT 0u
#define UACCEL_HELLO_REPLY_FLAGS_AT 2u
#define UACCEL_HELLO_REPLY_BODY_BYTES_AT 4u
#define UACCEL_HELLO_REPLY_RECEIVE_BYTES_AT 6u
#define UACCEL_HELLO_REPLY_INPUTS_AT 10u
#define UACCEL_HELLO_REPLY_OUTPUTS_AT 12u
#define UACCEL_HELLO_REPLY_LAYERS_AT 14u
#define UACCEL_HELLO_REPLY_INPUT_BYTES_AT 16u
#define UACCEL_HELLO_REPLY_OUTPUT_BYTES_AT 20u
#define UACCEL_HELLO_REPLY_DESCRIPTION_BYTES_AT 24u
#define UACCEL_HELLO_REPLY_TICKS_PER_SECOND_AT 28u
#define UACCEL_HELLO_REPLY_MODEL_HASH_AT 32u
#define UACCEL_HELLO_REPLY_BUILD_AT 64u
#define UACCEL_HELLO_REPLY_BYTES 72u

/* The piece is there. */
#define UACCEL_TYPE_WRITE_REPLY 0x82u

/* What came of a run. */
#define UACCEL_TYPE_RUN_REPLY 0x83u
#define UACCEL_RUN_REPLY_STATUS_AT 0u
#define UACCEL_RUN_REPLY_OUTPUT_CRC_AT 4u
#define UACCEL_RUN_REPLY_TICKS_AT 8u
#define UACCEL_RUN_REPLY_LEAST_TICKS_AT 16u
#define UACCEL_RUN_REPLY_INSTRUCTIONS_AT 24u
#define UACCEL_RUN_REPLY_STACK_BYTES_AT 32u
#define UACCEL_RUN_REPLY_CALLS_AT 36u
#define UACCEL_RUN_REPLY_CYCLES_AT 40u
#define UACCEL_RUN_REPLY_BYTES 48u

/* All `data` packets of the range were sent. */
#define UACCEL_TYPE_READ_REPLY 0x84u
#define UACCEL_READ_REPLY_OBJECT_BYTES_AT 0u
#define UACCEL_READ_REPLY_BYTES 4u

/* The level is set. */
#define UACCEL_TYPE_VERBOSITY_REPLY 0x85u

/* The firmware restarts now. */
#define UACCEL_TYPE_RESET_REPLY 0x86u

/* The piece is there. */
#define UACCEL_TYPE_WRITE_STATE_REPLY 0x87u

/* A piece of what a `read` or a `run` asked for, with its sequence. */
#define UACCEL_TYPE_DATA 0x90u
#define UACCEL_DATA_OFFSET_AT 0u
#define UACCEL_DATA_BYTES 4u

/* A request that runs the model has arrived; its answer takes as long as the model does. Sent twice. */
#define UACCEL_TYPE_STARTED 0x91u

/* Something was lost: the packet's sequence is the one that the device waits for. */
#define UACCEL_TYPE_EXPECT 0x92u

/* The answer to a request that cannot be served; repeats its sequence and its token. */
#define UACCEL_TYPE_ERROR 0x93u
#define UACCEL_ERROR_CODE_AT 0u
#define UACCEL_ERROR_DETAIL_AT 1u
#define UACCEL_ERROR_BYTES 5u

/* The firmware has started; token and sequence are 0. */
#define UACCEL_TYPE_BOOT 0xA0u
#define UACCEL_BOOT_VERSION_AT 0u
#define UACCEL_BOOT_BYTES 2u

/* A line of the device's log. The sequence counts them, so that a lost one is noticed; none is sent twice. */
#define UACCEL_TYPE_LOG 0xA1u
#define UACCEL_LOG_LEVEL_AT 0u
#define UACCEL_LOG_BYTES 1u

/* The firmware has stopped for good; token and sequence are 0. */
#define UACCEL_TYPE_FAULT 0xA2u

/* Objects that `read` reads. */
#define UACCEL_OBJECT_DESCRIPTION 0u
#define UACCEL_OBJECT_INPUTS 1u
#define UACCEL_OBJECT_OUTPUTS 2u
#define UACCEL_OBJECT_LAYERS 3u
#define UACCEL_OBJECT_TIMES 4u
#define UACCEL_OBJECT_ACCOUNTS 5u
#define UACCEL_OBJECT_STATE 6u

/* Flags of `hello_reply`. */
#define UACCEL_FLAG_OBSERVE 1u
#define UACCEL_FLAG_WORKSPACE_IO 2u
#define UACCEL_FLAG_STATE 4u

/* Errors, and what `detail` says. */
#define UACCEL_ERROR_STALE 1u
#define UACCEL_ERROR_TYPE 2u
#define UACCEL_ERROR_LENGTH 3u
#define UACCEL_ERROR_OBJECT 4u
#define UACCEL_ERROR_RANGE 5u
#define UACCEL_ERROR_INPUT 6u
#define UACCEL_ERROR_RUN 7u
#define UACCEL_ERROR_OBSERVE 8u
#define UACCEL_ERROR_MODEL 9u
#define UACCEL_ERROR_FORGOTTEN 10u
#define UACCEL_ERROR_SPENT 11u
#define UACCEL_ERROR_COUNT 12u
#define UACCEL_ERROR_STATE 13u

/* Log levels. */
#define UACCEL_LOG_DEBUG 0u
#define UACCEL_LOG_INFO 1u
#define UACCEL_LOG_WARNING 2u
#define UACCEL_LOG_ERROR 3u
#define UACCEL_LOG_SILENT 4u

#endif
