-- The hours once more without tenants, of which there may be thousands, for what asks of all of them. Folding fills them
-- together with the others; a reader adds the same differences.

CREATE TABLE attempts_by_hour (
    time           timestamptz      NOT NULL,
    status         text COLLATE "C" NOT NULL,
    records        bigint           NOT NULL,
    first_attempts bigint           NOT NULL,
    retries        bigint           NOT NULL,
    manual_retries bigint           NOT NULL,
    numbers        numeric          NOT NULL,
    PRIMARY KEY (time, status)
);

CREATE TABLE events_by_hour (
    time    timestamptz PRIMARY KEY,
    records bigint      NOT NULL
);

-- Nobody folds until these hold what is folded already.
LOCK TABLE attempts_hourly, events_hourly IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO attempts_by_hour
    SELECT time, status, sum(records), sum(first_attempts), sum(retries), sum(manual_retries), sum(numbers)
    FROM attempts_hourly GROUP BY 1, 2;
INSERT INTO events_by_hour SELECT time, sum(records) FROM events_hourly GROUP BY 1;
