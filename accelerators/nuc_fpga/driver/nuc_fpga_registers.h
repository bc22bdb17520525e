/* The registers of nuc_fpga, by their offsets in bytes; 32 bits each, and 0 after power-on but for the first two. */
#ifndef NUC_FPGA_REGISTERS_H
#define NUC_FPGA_REGISTERS_H

#define NUC_FPGA_IDENTITY 0x4E554346u /* "NUCF" */
#define NUC_FPGA_MAJOR 1u             /* versions of another one have other registers */

enum nuc_fpga_register {
    NUC_FPGA_IDENTITY_AT = 0x00,  /* NUC_FPGA_IDENTITY */
    NUC_FPGA_VERSION_AT = 0x04,   /* major << 16 | minor */
    NUC_FPGA_CONTROL_AT = 0x08,   /* write: start a job, enum nuc_fpga_job */
    NUC_FPGA_STOP_AT = 0x0C,      /* write: give up the job under way, and touch no memory any more */
    NUC_FPGA_STATUS_AT = 0x10,    /* enum nuc_fpga_status; a write clears it, and with it the interrupt */
    NUC_FPGA_ERROR_AT = 0x14,     /* why a job failed, enum nuc_fpga_error */
    NUC_FPGA_INTERRUPT_AT = 0x18, /* 1: raise the interrupt line while the status says that a job has ended */
    NUC_FPGA_FEATURES_AT = 0x1C,  /* addresses of the tensors */
    NUC_FPGA_KERNEL_AT = 0x20,
    NUC_FPGA_OUT_AT = 0x24,
    NUC_FPGA_PARAMETERS_AT = 0x28, /* from here on, in this order */
    NUC_FPGA_CYCLES_LOW_AT = 0x58, /* of the last job, 64 bits */
    NUC_FPGA_CYCLES_HIGH_AT = 0x5C
};

/* A matrix is a picture for each row, of one pixel; the registers after KERNEL_NUMBER do not matter then. */
enum nuc_fpga_parameter {
    NUC_FPGA_BATCH,
    NUC_FPGA_IN_CH,
    NUC_FPGA_IN_HEIGHT,
    NUC_FPGA_IN_WIDTH,
    NUC_FPGA_KERNEL_NUMBER,
    NUC_FPGA_GROUP,
    NUC_FPGA_PAD_HEIGHT,
    NUC_FPGA_PAD_WIDTH,
    NUC_FPGA_KERNEL_HEIGHT,
    NUC_FPGA_KERNEL_WIDTH,
    NUC_FPGA_STRIDE_HEIGHT,
    NUC_FPGA_STRIDE_WIDTH,
    NUC_FPGA_PARAMETERS
};

enum nuc_fpga_job { NUC_FPGA_CONV2D = 1, NUC_FPGA_DENSE = 2 };

enum nuc_fpga_status { NUC_FPGA_DONE = 1, NUC_FPGA_FAILED = 2 }; /* DONE however a job ends */

enum nuc_fpga_error {
    NUC_FPGA_NO_ERROR = 0,
    NUC_FPGA_BAD_PARAMETER = 1, /* the engine cannot do that job */
    NUC_FPGA_BUS_ERROR = 2,     /* no memory at an address, or none that it may write to */
    NUC_FPGA_INTERNAL = 3
};

#endif
