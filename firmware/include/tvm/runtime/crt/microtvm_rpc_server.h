/* Of applications that need microTVM's own C runtime. */
#error "microTVM's RPC server is not there: leave this application away, firmware of 'uaccel create' without --template serves uaccel.Session, or create the project with --standalone-crt"
