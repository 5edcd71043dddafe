// bullmq-processor.js - the handler of BullMQ's sandbox, which does nothing.
'use strict';

module.exports = async () => {};
