package redline;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import java.util.List;

@Path("/v1/pets")
public class Petstore {
    public record Pet(long id, String name, String tag) {}

    @GET
    public List<Pet> pets() {
        return List.of(new Pet(1, "catten", "cat"), new Pet(2, "doggy", "dog"));
    }
}
