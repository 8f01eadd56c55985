-- The epoch says that what readers see has moved: the state of a month, or a segment that they use or must warn about. Noting
-- that a file was verified, beginning one, or writing a state that is there already moves nothing, and must not make every
-- reading that is under way start again.

DROP TRIGGER bump_map_epoch ON months;
CREATE TRIGGER bump_on_insert AFTER INSERT ON months FOR EACH ROW EXECUTE FUNCTION bump_map_epoch();
CREATE TRIGGER bump_on_update AFTER UPDATE ON months
    FOR EACH ROW WHEN ((OLD.parent, OLD.month, OLD.state) IS DISTINCT FROM (NEW.parent, NEW.month, NEW.state))
    EXECUTE FUNCTION bump_map_epoch();
CREATE TRIGGER bump_on_delete AFTER DELETE ON months FOR EACH ROW EXECUTE FUNCTION bump_map_epoch();
CREATE TRIGGER bump_on_truncate AFTER TRUNCATE ON months FOR EACH STATEMENT EXECUTE FUNCTION bump_map_epoch();

DROP TRIGGER bump_map_epoch ON segments;
CREATE TRIGGER bump_on_insert AFTER INSERT ON segments
    FOR EACH ROW WHEN (NEW.state IN ('sealed', 'quarantined')) EXECUTE FUNCTION bump_map_epoch();
CREATE TRIGGER bump_on_update AFTER UPDATE ON segments
    FOR EACH ROW WHEN ((OLD.state IN ('sealed', 'quarantined') OR NEW.state IN ('sealed', 'quarantined'))
                       AND (OLD.state, OLD.location, OLD.note) IS DISTINCT FROM (NEW.state, NEW.location, NEW.note))
    EXECUTE FUNCTION bump_map_epoch();
CREATE TRIGGER bump_on_delete AFTER DELETE ON segments
    FOR EACH ROW WHEN (OLD.state IN ('sealed', 'quarantined')) EXECUTE FUNCTION bump_map_epoch();
CREATE TRIGGER bump_on_truncate AFTER TRUNCATE ON segments FOR EACH STATEMENT EXECUTE FUNCTION bump_map_epoch();
